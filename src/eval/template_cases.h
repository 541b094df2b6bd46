// SPDX-License-Identifier: Apache-2.0
// Chat template cases: a template (by name or as text), a context, and the text or the error that must come out.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "eval/report.h"

namespace weir::eval {

struct TemplateOptions {
  std::vector<std::filesystem::path> folders;  // where NAME.jinja is looked for
  std::filesystem::path model;                 // GGUF file whose template '@gguf:…' names
};

// Cases whose template is not found count as missing and make the report fail: nothing was shown for them.
Result<FileReport> run_template_cases(const std::filesystem::path& file, const TemplateOptions& options);

}  // namespace weir::eval
