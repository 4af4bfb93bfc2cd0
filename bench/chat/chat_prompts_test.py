#!/usr/bin/env python3
"""The prompts themselves: needs neither the program nor a model."""
import random
import unittest

from chat_prompts import FILLER, conversation, largest_filler, wordings


class ChatPrompts(unittest.TestCase):
    def prompt(self, seed, num_fillers=40, wording="secret"):
        return conversation(random.Random(seed), num_fillers, wordings()[wording])

    def test_one_sentence_tells_what_the_question_asks(self):
        line = self.prompt(3)
        text = line["messages"][0]["content"]
        haystack, question = text.split("\n\n")
        key = question.removeprefix("What is the secret number of ").removesuffix("?")
        self.assertEqual(haystack.count(f"The secret number of {key} is {line['answer']}."), 1)
        self.assertEqual(haystack.count("secret"), 1)
        self.assertEqual(line["prefix"], f"The secret number of {key} is")
        self.assertRegex(line["answer"], "^[1-9][0-9]{6}$")

    def test_the_rest_is_so_many_filler_sentences_in_turn(self):
        text = self.prompt(4, 10)["messages"][0]["content"]
        self.assertEqual([text.count(sentence) for sentence in FILLER], [3, 3, 2, 2])

    def test_a_seed_gives_one_prompt_and_another_another(self):
        self.assertEqual(self.prompt(5), self.prompt(5))
        self.assertNotEqual(self.prompt(5), self.prompt(6))

    def test_the_fact_stands_anywhere(self):
        places = [self.prompt(seed)["messages"][0]["content"].find("secret")
                  for seed in range(50)]
        self.assertLess(min(places), 200)
        self.assertGreater(max(places), 800)

    def test_every_wording_tells_its_number_once_and_begins_to_say_it_again(self):
        for wording in wordings():
            line = self.prompt(7, wording=wording)
            text, begun = line["messages"][0]["content"], line["prefix"].rstrip()
            self.assertEqual(text.count(f"{begun} {line['answer']}."), 1, wording)
            self.assertTrue(text.endswith(f"What is t{begun[1:].removesuffix(' is')}?"), wording)

    def test_as_much_filler_as_fits(self):
        for most in (0, 1, 2, 7, 100):
            self.assertEqual(largest_filler(10 + 7 * most + 6, lambda n: 10 + 7 * n), most)


if __name__ == "__main__":
    unittest.main()
