// The files are those of the server's own writers (src/speech/subtitles.cc), byte for byte.
import assert from "node:assert/strict";
import test from "node:test";

import {downloadName, formatTimestamp, toJson, toSrt, toTxt, toVtt} from "../../../src/server/page/subtitles.js";

const kSegments = [
  {start: 0, end: 1.5, text: " Hello --> world. "},
  {start: 3599.9996, end: 3661.0404, text: "Zwei\u00e9"},
];

test("time stamps round to milliseconds and carry", () => {
  assert.equal(formatTimestamp(0, false, "."), "00:00.000");
  assert.equal(formatTimestamp(0, true, ","), "00:00:00,000");
  assert.equal(formatTimestamp(59.9996, false, "."), "01:00.000");
  assert.equal(formatTimestamp(3600, false, "."), "01:00:00.000");
  assert.equal(formatTimestamp(360000.001, true, ","), "100:00:00,001");
  assert.equal(formatTimestamp(-1, true, ","), "00:00:00,000");
});

test("srt", () => {
  assert.equal(toSrt(kSegments), "1\n00:00:00,000 --> 00:00:01,500\nHello -> world.\n\n"
      + "2\n01:00:00,000 --> 01:01:01,040\nZwei\u00e9\n\n");
});

test("vtt has hours only where there are some", () => {
  assert.equal(toVtt(kSegments), "WEBVTT\n\n00:00.000 --> 00:01.500\nHello -> world.\n\n"
      + "01:00:00.000 --> 01:01:01.040\nZwei\u00e9\n\n");
});

test("no segments: files that are empty and still valid", () => {
  assert.equal(toSrt([]), "");
  assert.equal(toVtt([]), "WEBVTT\n\n");
});

test("txt has a line a segment, or the text", () => {
  assert.equal(toTxt({text: "no", segments: kSegments}), "Hello --> world.\nZwei\u00e9\n");
  assert.equal(toTxt({text: " all of it "}), "all of it\n");
});

test("json is the reply", () => assert.deepEqual(JSON.parse(toJson({text: "x", words: []})), {text: "x", words: []}));

test("names of downloads", () => {
  assert.equal(downloadName("talk.final.mp3", "srt"), "talk.final.srt");
  assert.equal(downloadName("a/b\\c:d.wav", "vtt"), "a_b_c_d.vtt");
  assert.equal(downloadName("no extension here", "txt"), "no extension here.txt");
  assert.equal(downloadName("", "json"), "transcript.json");
  assert.equal(downloadName(".wav", "json"), "transcript.json");
});
