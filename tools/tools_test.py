#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks and the test runner: that they find what they are for, and count what they run."""

import hashlib
import io
import pathlib
import sys
import tarfile
import tempfile
import unittest
import zipfile

sys.dont_write_bytecode = True  # a new file here would look to ./run like a changed source
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_layers
import check_style
import fetch_test_data
import run_tests
from run_tests import Counts, Outcome


class Layers(unittest.TestCase):
    def test_a_folder_may_include_what_lies_below_it(self):
        self.assertEqual(check_layers.check_source("engine", "src/engine/a.cc", '#include "tensor/dtype.h"\n#include "engine/a.h"\n'), [])

    def test_an_include_upwards_or_sideways_is_named_with_its_line(self):
        for folder, target in (("kvcache", "tensor"), ("kernels", "model"), ("formats", "kernels"), ("store", "eval"), ("eval", "store"), ("base", "tensor")):
            problems = check_layers.check_source(folder, f"src/{folder}/a.cc", f'\n#include "{target}/x.h"\n')
            self.assertEqual(len(problems), 1, (folder, target))
            self.assertTrue(problems[0].startswith(f"src/{folder}/a.cc:2: {folder} must not include"), problems[0])

    def test_the_test_helpers_are_for_tests(self):
        text = '#include "base/testing.h"\n'
        self.assertEqual(len(check_layers.check_source("formats", "src/formats/reader.cc", text)), 1)
        for name in ("reader_test.cc", "gguf_fuzz.cc", "gguf_bench.cc", "test_files.h"):
            self.assertEqual(check_layers.check_source("formats", f"src/formats/{name}", text), [], name)

    def test_links_keep_to_the_same_table(self):
        self.assertEqual(check_layers.check_links("weir_library(model DEPS weir_formats weir_kernels)"), [])
        self.assertEqual(check_layers.check_links("weir_library(kvcache DEPS weir_tensor)"), ["CMakeLists.txt: kvcache must not link tensor"])
        self.assertEqual(len(check_layers.check_links("weir_library(unheard_of DEPS weir_base)")), 1)

    def test_the_table_has_no_cycle(self):
        for folder, below in check_layers.LAYERS.items():
            for other in below:
                self.assertNotIn(folder, check_layers.allowed(other), f"{folder} and {other} include each other")


class Style(unittest.TestCase):
    def test_long_functions_are_found_with_their_names(self):
        body = "  x();\n" * 45
        text = f"int short_one() {{\n  return 1;\n}}\n\nvoid Engine::long_one(int a,\n    int b) {{\n{body}}}\n\nclass A {{\n  void inner() {{\n{body}  }}\n}};\n"
        self.assertEqual(check_style.long_functions(text), [(5, "Engine::long_one", 48), (55, "inner", 47)])

    def test_namespaces_classes_and_declarations_are_not_functions(self):
        text = "namespace weir {\nclass A {\n" + "  int f(int);\n" * 60 + "};\n}\n"
        self.assertEqual(check_style.long_functions(text), [])

    def test_the_licence_line_stands_in_the_first_two_lines(self):
        self.assertTrue(check_style.has_spdx("#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"))
        self.assertFalse(check_style.has_spdx("//\n//\n// SPDX-License-Identifier: Apache-2.0\n"))


class Counting(unittest.TestCase):
    REPORT = {"testsuites": [{"name": "S", "testsuite": [
        {"name": "A", "result": "COMPLETED"},
        {"name": "B", "result": "COMPLETED", "failures": [{"failure": "x"}]},
        {"name": "C", "result": "SKIPPED"},
        {"name": "DISABLED_D", "result": "SUPPRESSED"}]}]}

    def test_a_skipped_test_is_never_a_passed_one(self):
        self.assertEqual(run_tests.count_gtest_report(self.REPORT), Counts(passed=1, failed=1, skipped=2))
        self.assertEqual(run_tests.count_status(Outcome(run_tests.SKIPPED_EXIT, "", 0)), Counts(skipped=1))

    def test_a_program_that_dies_before_its_report_is_a_failure(self):
        count = run_tests.gtest_counter(pathlib.Path("/nonexistent/report.json"))
        self.assertEqual(count(Outcome(-11, "[       OK ] S.A (0 ms)\n[ RUN      ] S.B\n", 1)), Counts(passed=1, failed=1))
        self.assertEqual(count(Outcome(None, "", 420)), Counts(failed=1))

    def test_an_exit_status_counts_even_when_every_case_passed(self):
        self.assertEqual(run_tests.with_status(Counts(passed=5), Outcome(1, "", 0)), Counts(passed=5, failed=1))

    def test_cargo_and_unittest_totals(self):
        cargo = "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured\n\ntest result: FAILED. 1 passed; 2 failed; 0 ignored;\n"
        self.assertEqual(run_tests.count_cargo(Outcome(101, cargo, 1)), Counts(6, 2, 1))
        self.assertEqual(run_tests.count_unittest(Outcome(1, "Ran 9 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=3)\n", 1)), Counts(3, 3, 3))
        self.assertEqual(run_tests.count_unittest(Outcome(0, "Ran 9 tests in 0.1s\n\nOK\n", 1)), Counts(9, 0, 0))
        self.assertEqual(run_tests.count_unittest(Outcome(1, "SyntaxError", 1)), Counts(failed=1))

    def test_only_the_failed_cases_are_shown(self):
        output = ("[ RUN      ] S.Good\n[       OK ] S.Good (0 ms)\n[ RUN      ] S.Bad\na.cc:7: Failure\nwhy\n[  FAILED  ] S.Bad (1 ms)\n"
                  "[ RUN      ] S.Last\n[       OK ] S.Last (0 ms)\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] S.Bad\n")
        self.assertEqual(run_tests.failure_lines(output), ["[ RUN      ] S.Bad", "a.cc:7: Failure", "why"])
        crashed = "[ RUN      ] S.Bad\nERROR: AddressSanitizer\n"
        self.assertEqual(run_tests.failure_lines(crashed), ["[ RUN      ] S.Bad", "ERROR: AddressSanitizer"])

    def test_a_job_past_its_limit_is_ended_with_its_children(self):
        with tempfile.TemporaryDirectory() as folder:
            job = run_tests.Job("slow", ["sh", "-c", "echo begun; sleep 60 & wait"], run_tests.count_status, limit_s=0.3)
            _, outcome = run_tests.run_job(job, "release", pathlib.Path(folder))
            self.assertIsNone(outcome.status)
            self.assertIn("begun", outcome.output)
            self.assertLess(outcome.seconds, 30)
            self.assertEqual(job.count(outcome), Counts(failed=1))


class TestData(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def test_a_wheel_is_unpacked_below_its_prefix_only(self):
        wheel = self.folder / "w.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for name in ("pkg/model/a.json", "pkg/model/sub/b.json", "pkg/code.py", "pkg/model/../../evil"):
                archive.writestr(name, name)
        fetch_test_data.unpack_wheel(wheel, "pkg/model/", self.folder / "out")
        found = sorted(str(p.relative_to(self.folder)) for p in self.folder.rglob("*") if p.is_file())
        self.assertEqual(found, ["out/a.json", "out/sub/b.json", "w.whl"])

    def test_another_checksum_is_refused(self):
        file = self.folder / "x"
        file.write_bytes(b"abc")
        fetch_test_data.check(file, hashlib.sha256(b"abc").hexdigest())
        with self.assertRaisesRegex(fetch_test_data.FetchError, "SHA-256"):
            fetch_test_data.check(file, hashlib.sha256(b"abd").hexdigest())

    def test_a_source_distribution_without_the_vocabularies_is_refused(self):
        sdist = self.folder / "s.tar.gz"
        with tarfile.open(sdist, "w:gz") as archive:
            for name in ("p-1/vendor/llama.cpp/models/templates/a.jinja", "p-1/vendor/llama.cpp/src/x.cpp"):
                member = tarfile.TarInfo(name)
                member.size = 2
                archive.addfile(member, io.BytesIO(b"hi"))
        with self.assertRaisesRegex(fetch_test_data.FetchError, "ggml-vocab"):
            fetch_test_data.unpack_llama_cpp(sdist, self.folder / "out")
        self.assertEqual(sorted(p.name for p in (self.folder / "out").rglob("*") if p.is_file()), ["a.jinja"])

    def test_a_failed_install_leaves_no_part_in_the_cache(self):
        def unpack(_, target):
            (target / "minilm").mkdir(parents=True)
            raise fetch_test_data.FetchError("bad")

        package = fetch_test_data.Package("p", "1", "0", 1, ["minilm"], unpack)
        original, fetch_test_data.download = fetch_test_data.download, lambda *_: pathlib.Path("unused")
        self.addCleanup(setattr, fetch_test_data, "download", original)
        with self.assertRaises(fetch_test_data.FetchError):
            fetch_test_data.install(package, self.folder)
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
