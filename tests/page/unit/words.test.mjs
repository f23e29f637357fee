// Words find their place in the text of their segment, and no character of the text is lost or doubled.
import assert from "node:assert/strict";
import test from "node:test";

import {languageChoices, languageName} from "../../../src/server/page/languages.js";
import {indexAt, piecesOf} from "../../../src/server/page/words.js";

const word = (text, start, end = start + 0.3) => ({word: text, start, end});

test("pieces are the text, whatever words are like", () => {
  const cases = [
    ["Hello, world! Bye.", ["Hello", "world", "Bye"], ["Hello", "world", "Bye"]],
    ["Hello, world!", [" Hello,", " world!"], ["Hello,", "world!"]],
    ["\u4f60\u597d\u4e16\u754c", ["\u4f60\u597d", "\u4e16\u754c"], ["\u4f60\u597d", "\u4e16\u754c"]],
    ["the the the", ["the", "the", "the"], ["the", "the", "the"]],
    ["one 2 three", ["one", "two", "three"], ["one", "three"]],
    ["nothing fits", ["x", ""], []],
    ["", ["a"], []],
  ];
  for (const [text, words, expected] of cases) {
    const pieces = piecesOf(text, words.map((each, index) => word(each, index)));
    assert.equal(pieces.map((piece) => piece.text).join(""), text);
    assert.deepEqual(pieces.filter((piece) => piece.word).map((piece) => piece.text), expected);
  }
});

test("a word that is spelled alike far ahead does not swallow what is between", () => {
  const text = `Start ${"filler ".repeat(10)}so end`;
  const pieces = piecesOf(text, [word("Start", 0), word("so", 1), word("filler", 2)]);
  assert.deepEqual(pieces.filter((piece) => piece.word).map((piece) => piece.word.start), [0, 2]);
});

test("what plays at a time", () => {
  const items = [{start: 1}, {start: 2}, {start: 2}, {start: 5}];
  assert.deepEqual([0, 1, 1.9, 2, 4.9, 5, 99].map((time) => indexAt(items, time)), [-1, 0, 0, 2, 2, 3, 3]);
  assert.equal(indexAt([], 1), -1);
});

test("names of languages from all kinds of codes", () => {
  assert.deepEqual(["en", "en_XX", "yue", "no such code!", "qq"].map((code) => languageName(code)),
                   ["English", "English", "Cantonese", "no such code!", "qq"]);
  assert.deepEqual(languageChoices(["en", "de", "en_XX"]), [
    {code: "en_XX", name: "English (en_XX)"}, {code: "en", name: "English (en)"}, {code: "de", name: "German"},
  ]);
});
