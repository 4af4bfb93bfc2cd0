#!/usr/bin/env python3
"""check_docs.py finds each kind of mistake, and nothing in a document without one."""
import os
import tempfile
import unittest

import check_docs

SOURCE = "int one() {\n  return 1;\n}\nint two() {\n  return 2;\n}\nTEST(Number, IsOne) {}\n"


class CheckDocs(unittest.TestCase):
    def problems(self, text):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "src/base"))
            for name, content in (("src/base/number_test.cc", SOURCE), ("page.md", text)):
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(content)
            old, check_docs.ROOT = check_docs.ROOT, root
            try:
                return check_docs.problems_in("page.md", check_docs.tests())[0]
            finally:
                check_docs.ROOT = old

    def test_what_exists_is_fine(self):
        self.assertEqual(self.problems("`Number.IsOne` `src/base/number_test.cc` `base/*_test.cc`\n"
                                       "`build/release/tidekv` `Suite.name` `a/b`\n"), [])

    def test_names_that_do_not_exist(self):
        self.assertEqual(self.problems("x\n`Number.IsTwo`, `src/base/none.h`\n"),
                         [(2, "no test Number.IsTwo"), (2, "no file src/base/none.h")])

    def test_quotations(self):
        fence = "```cpp src/base/number_test.cc\n%s```\n"
        self.assertEqual(self.problems(fence % "int one() {\n  // ...\n  return 2;\n}\n"), [])
        wrong = [(1, "src/base/number_test.cc does not hold this code")]
        self.assertEqual(self.problems(fence % "int three() {\n"), wrong)
        self.assertEqual(self.problems(fence % "int two() {\n// ...\nint one() {\n"), wrong)
        self.assertEqual(self.problems("```cpp src/none.cc\nint x;\n```\n"),
                         [(1, "no file src/none.cc")])


if __name__ == "__main__":
    unittest.main(argv=[__file__, "--quiet"])
