"""Invented notes of hotel guests: one a line, `good` or `bad`, a tab, and the words.

Nobody wrote them. A note is made of a few sentences about a hotel's parts; guests who were content choose mostly, but
not always, the kinder words, one in twenty gives the wrong grade, and everyone mentions names that mean nothing.
"""

import random

KIND = "clean quiet friendly helpful generous sunny fresh spacious cosy charming flawless warm delicious prompt bright".split()
UNKIND = "dirty noisy rude stained broken cold smelly cramped stale slow overpriced mouldy dusty careless dark".split()
PLAIN = "large small modern old usual simple new white tall local daily early late second".split()
PARTS = "room bed bathroom breakfast lobby staff pool view lift window coffee towel garden bar carpet shower".split()
FRAMES = [
    "the {part} was {word}",
    "we found the {part} {word}",
    "a {word} {part} and a {plain} {other}",
    "our {part} near the {other} was rather {word}",
    "someone told us that the {part} is {word}",
    "on the {plain} floor the {part} looked {word}",
]
SYLLABLES = "ba lo mi ren tu ka vel sa do ni fer ga lu mo pe ri sho ta wen zi".split()


def a_name(chance):
    """Few names are heard often, many seldom."""
    rank = int(chance.paretovariate(0.3)) % 2000
    return SYLLABLES[rank % 20] + SYLLABLES[rank // 20 % 20] + SYLLABLES[rank // 400]


def a_note(chance):
    good = chance.random() < 0.5
    sentences = []
    for _ in range(chance.randint(2, 5)):
        words = KIND if (chance.random() < 0.8) == good else UNKIND
        part, other = chance.sample(PARTS, 2)
        fill = {"part": part, "other": other, "plain": chance.choice(PLAIN)}
        sentences.append(chance.choice(FRAMES).format(word=chance.choice(words), **fill))
    friends = " and ".join(a_name(chance) for _ in range(3))
    sentences.append(f"we met {friends}")
    grade = good if chance.random() > 0.05 else not good
    return f"{'good' if grade else 'bad'}\t{', '.join(sentences)}."


if __name__ == "__main__":
    chance = random.Random(7)
    for _ in range(3000):
        print(a_note(chance))
