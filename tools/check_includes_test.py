#!/usr/bin/env python3
"""Breaks each rule of check_includes.py once, in a tree of its own, and sees it caught."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = os.path.dirname(os.path.abspath(__file__))


def check(path, text):
    """Exit code and output of the check over a tree with this one source file."""
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "tools"))
        shutil.copy(os.path.join(TOOLS, "layers.txt"), os.path.join(root, "tools"))
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as file:
            file.write(text + "\n")
        run = subprocess.run([sys.executable, os.path.join(TOOLS, "check_includes.py"), root],
                             capture_output=True, text=True, check=False)
        return run.returncode, run.stdout


class CheckIncludes(unittest.TestCase):
    def refuses(self, path, text, words):
        code, output = check(path, text)
        self.assertEqual(code, 1, output)
        self.assertIn(f"{path}:1: ", output)
        self.assertIn(words, output)

    def accepts(self, path, text):
        code, output = check(path, text)
        self.assertEqual(code, 0, output)

    def test_arrows_point_down(self):
        self.refuses("src/cache/a.cc", '#include "compress/selector.h"', "may not include")
        self.refuses("src/io/a.cc", '#include "backend/backend.h"', "may not include")
        self.refuses("src/compress/a.cc", '#include "model/config.h"', "may not include")
        self.refuses("src/model/a.cc", '#include "compress/selector.h"', "may not include")
        self.refuses("src/base/a.cc", '#include "tensor/view.h"', "may not include")
        self.accepts("src/prefill/a.cc", '#include "compress/selector.h"')

    def test_siblings_are_strangers(self):
        self.refuses("src/backend/cpu/a.cc", '#include "backend/dryrun/b.h"', "may not include")
        self.refuses("src/backend/backend.cc", '#include "backend/cpu/b.h"', "may not include")
        self.refuses("src/compress/selectors/a.cc", '#include "compress/selectors/b.h"',
                     "may not include")
        self.accepts("src/compress/selectors/a.cc", '#include "compress/selectors/selectors.h"')
        self.accepts("src/engine/a.cc", '#include "session.h"')
        self.accepts("src/backend/registry.cc", '#include "backend/cpu/b.h"')

    def test_only_the_engine_and_above_see_the_public_headers(self):
        self.refuses("src/prefill/a.cc", '#include "tidekv/options.h"', "may not include")
        self.accepts("src/prefill/a.cc", '#include "tidekv/result.h"')
        self.accepts("src/engine/a.cc", '#include "tidekv/options.h"')

    def test_programs_see_the_public_headers_only(self):
        self.refuses("apps/cli/a.cc", '#include "memory/plan.h"', "may not include")
        self.refuses("examples/hello/a.cc", '#include "base/file.h"', "may not include")
        self.accepts("apps/cli/a.cc", '#include "base/file.h"')

    def test_public_headers_need_only_the_standard_library(self):
        self.refuses("include/tidekv/a.h", "#include <nlohmann/json.hpp>", "standard library only")
        self.refuses("include/tidekv/a.h", '#include "base/file.h"', "may not include")

    def test_slow_headers_stay_out_of_headers(self):
        self.refuses("src/io/a.h", "#include <nlohmann/json.hpp>", "stays out of headers")
        self.accepts("src/io/a.cc", "#include <nlohmann/json.hpp>")

    def test_nothing_includes_tests_or_bench(self):
        self.refuses("src/engine/a.cc", '#include "tests/oracle/a.h"', "in no unit")
        self.refuses("apps/cli/a.cc", '#include "bench/needle/a.h"', "in no unit")
        self.accepts("src/engine/a_test.cc", '#include "tests/oracle/a.h"')

    def test_a_new_folder_needs_a_line_in_layers(self):
        self.refuses("src/brandnew/a.cc", '#include "base/file.h"', "in no unit")

    def test_only_backends_touch_device_memory(self):
        self.refuses("src/cache/a.cc", "  auto* p = view.device_ptr();", "only they touch")
        self.accepts("src/backend/cpu/a.cc", "  auto* p = view.device_ptr();")
        self.accepts("src/cache/a_test.cc", "  auto* p = view.device_ptr();")

    def test_only_the_cuda_backend_includes_cuda(self):
        self.refuses("src/backend/cpu/a.cc", "#include <cuda_runtime.h>", "CUDA")
        self.refuses("src/engine/a.cc", "#include <cublasLt.h>", "CUDA")

    def test_build_options_stay_in_backend_and_base(self):
        self.refuses("src/engine/a.cc", "#if TIDEKV_CUDA", "build options")
        self.refuses("src/engine/a.cc", "#ifdef TIDEKV_CUDA", "build options")
        self.refuses("src/engine/a.cc", "#if defined(TIDEKV_CUDA)", "build options")
        self.accepts("src/backend/registry.cc", "#if TIDEKV_CUDA")

    def test_the_library_does_not_print(self):
        self.refuses("src/engine/a.cc", '  std::cout << "x";', "does not print")
        self.refuses("src/engine/a.cc", '  std::fprintf(stderr, "x");', "does not print")
        self.refuses("src/engine/a.cc", '  printf("x");', "does not print")
        self.accepts("src/engine/a.cc", "  std::snprintf(text, sizeof text, format);")
        self.accepts("apps/cli/a.cc", '  std::cout << "x";')

    def test_no_mutable_variable_at_namespace_scope(self):
        for text in ("int count = 0;", "static int count;", "std::vector<int> cache;",
                     "std::atomic<int> calls{0};", "thread_local std::string last;",
                     "int table[4] = {};", "inline bool seen = false;"):
            self.refuses("src/engine/a.cc", text, "namespace scope")
        for text in ("constexpr int kCount = 3;", "const int kCount = 3;", "int count();",
                     "  int count = 0;", "using Call = void (*)();", "struct Point {",
                     "enum class Kind : int {", "Result<int> count(int x) {", "}  // namespace",
                     "namespace {", "bool operator==(const A& a, const A& b) = default;"):
            self.accepts("src/engine/a.cc", text)


if __name__ == "__main__":
    unittest.main()
