"""Lines of `label<TAB>words` → train.svm, test.svm and words.txt, the word behind each column.

    python3 tokenise.py lines.txt

A column is a word that at least two training lines have; a row has a 1 for each of its words, scaled to unit length,
as LIBSVM's text sets are. Every fifth line is kept for the test.
"""

import collections
import math
import re
import sys


def words(text):
    return sorted(set(re.findall(r"[a-z]+", text.lower())))


def write(name, lines, column):
    with open(name, "w") as out:
        for label, text in lines:
            known = sorted(column[word] for word in words(text) if word in column)
            value = 1 / math.sqrt(max(len(known), 1))
            out.write(" ".join([label, *(f"{at}:{value:.6g}" for at in known)]) + "\n")


def main(path):
    with open(path) as file:
        lines = [line.rstrip("\n").split("\t", 1) for line in file]
    lines = [("1" if label == "good" else "-1", text) for label, text in lines]
    train = [line for number, line in enumerate(lines) if number % 5 != 0]
    counts = collections.Counter(word for _, text in train for word in words(text))
    vocabulary = sorted(word for word, count in counts.items() if count >= 2)
    column = {word: at for at, word in enumerate(vocabulary, 1)}
    write("train.svm", train, column)
    write("test.svm", lines[::5], column)
    with open("words.txt", "w") as out:
        out.writelines(word + "\n" for word in vocabulary)
    print(f"{len(train)} lines to learn from, {len(lines[::5])} to test on, {len(vocabulary)} words")


if __name__ == "__main__":
    main(sys.argv[1])
