// SPDX-License-Identifier: Apache-2.0
// Products of a layer with the share that adapters have in them. What a row's adapter adds is computed for the rows of one adapter
// together, in two steps: x·Aᵀ beside the model's own products, then that times Bᵀ, added to what those left. Rows without an adapter
// see neither.
#include <algorithm>

#include "model/adapter.h"
#include "model/layers/layers.h"

namespace weir::model {

namespace {

// The step on some of the rows.
const kernels::InputStep* step_of_rows(const Pass& pass, const kernels::InputStep* step, const AdaptedRows& rows) {
  if (!step || step->kind == kernels::InputStep::Kind::kNorm || !step->factor.data) return step;
  kernels::InputStep& part = pass.arena.array<kernels::InputStep>(1)[0];
  part = *step;
  part.factor = step->factor.row_range(rows.begin, rows.count);
  return &part;
}

// The jobs of both steps; `shared` weights that read the same input follow one another.
struct Steps {
  std::span<LinearJob> first, second;
  std::size_t firsts = 0, seconds = 0;
  const LinearJob* last = nullptr;  // the model's product whose input was shrunk last

  void add(const Pass& pass, const LinearJob& job, const AdaptedRows& rows) {
    const LowRank* change = rows.adapter->find(job.weight);
    if (!change) return;
    const bool known = last && first[firsts - 1].weight == change->down && last->x.data == job.x.data && last->x.stride == job.x.stride &&
                       last->input == job.input && first[firsts - 1].x.data == job.x.row(rows.begin);
    if (!known) {
      const Matrix small = pass.arena.matrix(rows.count, change->down->out());
      first[firsts++] = {job.x.row_range(rows.begin, rows.count), change->down, nullptr, small, false, step_of_rows(pass, job.input, rows)};
      last = &job;
    }
    second[seconds++] = {first[firsts - 1].out.col_range(change->first, change->rank), &change->up, nullptr,
                         job.out.row_range(rows.begin, rows.count), true};
  }
  void run(const Pass& pass) const {
    pass.backend.linear(first.first(firsts));
    if (seconds > 0) pass.backend.linear(second.first(seconds));
  }
};

Steps steps_of(const Pass& pass, std::span<const LinearJob> jobs, std::size_t changes) {
  Steps steps{pass.arena.array<LinearJob>(jobs.size() + changes), pass.arena.array<LinearJob>(changes)};
  std::ranges::copy(jobs, steps.first.begin());
  steps.firsts = jobs.size();
  return steps;
}

// The jobs, all of which see all rows, with those of prompts named.
std::span<const LinearJob> with_phases(const Pass& pass, std::span<const LinearJob> jobs) {
  if (pass.prompt_rows == 0) return jobs;
  const std::span<LinearJob> out = pass.arena.array<LinearJob>(jobs.size());
  std::ranges::copy(jobs, out.begin());
  for (LinearJob& job : out) job.prompt_rows = pass.prompt_rows;
  return out;
}

}  // namespace

void linear(const Pass& pass, std::span<const LinearJob> given, std::span<const AdaptedRows> adapted) {
  const Arena::Scope scope(pass.arena);
  const std::span<const LinearJob> jobs = with_phases(pass, given);
  if (adapted.empty()) return pass.backend.linear(jobs);
  Steps steps = steps_of(pass, jobs, jobs.size() * adapted.size());
  for (const AdaptedRows& rows : adapted)
    for (const LinearJob& job : jobs) steps.add(pass, job, rows);
  steps.run(pass);
}

void linear_parts(const Pass& pass, std::span<const LinearJob> jobs, std::span<const AdaptedPart> parts) {
  if (parts.empty()) return pass.backend.linear(jobs);
  const Arena::Scope scope(pass.arena);
  Steps steps = steps_of(pass, jobs, parts.size());
  for (const AdaptedPart& part : parts) steps.add(pass, jobs[part.job], part.rows);
  steps.run(pass);
}

}  // namespace weir::model
