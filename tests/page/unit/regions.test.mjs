// Regions from structured answers: those of every task of Florence-2, and what is none of them.
import assert from "node:assert/strict";
import test from "node:test";

import {boundsOf, huesOf, pictureWords, splitStructured} from "../../../src/server/page/regions.js";

test("boxes are four corners, with their labels", () => {
  const structured = {"<OD>": {bboxes: [[34.5, 160, 597, 371], [1, 2, 3, 4]], labels: ["car", " wheel "]}};
  assert.deepEqual(splitStructured(structured), {
    regions: [
      {label: "car", kind: "box", shapes: [[[34.5, 160], [597, 160], [597, 371], [34.5, 371]]]},
      {label: "wheel", kind: "box", shapes: [[[1, 2], [3, 2], [3, 4], [1, 4]]]},
    ],
    rest: null,
  });
});

test("quads keep their corners, outlines their parts", () => {
  const quads = splitStructured({"<OCR_WITH_REGION>": {quad_boxes: [[1, 2, 30, 3, 29, 9, 0, 8]], labels: ["Tea"]}});
  assert.deepEqual(quads.regions, [{label: "Tea", kind: "box", shapes: [[[1, 2], [30, 3], [29, 9], [0, 8]]]}]);
  const outlines = splitStructured({"<R>": {polygons: [[[0, 0, 4, 0, 4, 4], [9, 9]], [[1, 1, 2, 2, 3]]], labels: ["", "x"]}});
  assert.deepEqual(outlines.regions, [
    {label: "", kind: "outline", shapes: [[[0, 0], [4, 0], [4, 4]], [[9, 9]]]},
    {label: "x", kind: "outline", shapes: [[[1, 1], [2, 2]]]},
  ]);
});

test("boxes and outlines of one answer have labels of their own", () => {
  const {regions, rest} = splitStructured({"<OPEN_VOCABULARY_DETECTION>": {
    bboxes: [[0, 0, 1, 1]], bboxes_labels: ["a"], polygons: [[[0, 0, 1, 0, 1, 1]]], polygons_labels: ["b"]}});
  assert.deepEqual(regions.map(({label, kind}) => [label, kind]), [["a", "box"], ["b", "outline"]]);
  assert.equal(rest, null);
});

test("an answer that found nothing is one of regions all the same", () => {
  assert.deepEqual(splitStructured({"<OD>": {bboxes: [], labels: []}}), {regions: [], rest: null});
});

test("a box without a label has an empty one", () => {
  for (const labels of [undefined, null, [], [null]]) {
    assert.equal(splitStructured({"<OD>": {bboxes: [[0, 0, 1, 1]], labels}}).regions[0].label, "");
  }
});

test("fields, texts and lists are no regions, and nothing of them is lost", () => {
  const values = [{menu: [{nm: "Tea", price: "2"}]}, {text_sequence: "x"}, {"<CAPTION>": "a car"}, [1], "x", 0, false, {},
                  {menu: null}, {bboxes: [[0, 0, 1, 1]], labels: ["not below a task"]}];
  for (const value of values) assert.deepEqual(splitStructured(value), {regions: null, rest: value});
  for (const none of [null, undefined]) assert.deepEqual(splitStructured(none), {regions: null, rest: null});
});

test("places that are none are shown as they are", () => {
  const wrong = [{bboxes: [[1, 2, 3]]}, {bboxes: [[1, 2, 3, "4"]]}, {bboxes: [[1, 2, 3, NaN]]}, {bboxes: [null]}, {bboxes: 3},
                 {bboxes: null}, {quad_boxes: [[1, 2, 3, 4]]}, {polygons: [[]]}, {polygons: [[[1]]]}, {polygons: [[1, 2]]},
                 {bboxes: [[0, 0, 1, 1]], polygons: [["x"]]}];
  for (const answer of wrong) {
    const structured = {"<OD>": answer};
    assert.deepEqual(splitStructured(structured), {regions: null, rest: structured}, JSON.stringify(answer));
  }
});

test("regions and fields of one answer go their ways", () => {
  const {regions, rest} = splitStructured({a: {bboxes: [[0, 0, 1, 1]], labels: ["x"]}, b: "text"});
  assert.equal(regions.length, 1);
  assert.deepEqual(rest, {b: "text"});
});

test("bounds are those of all parts", () => {
  assert.deepEqual(boundsOf({shapes: [[[5, 1], [2, 7]], [[-1, 3]]]}), [-1, 1, 5, 7]);
});

test("bounds of very many points", () => {
  const many = Array.from({length: 300000}, (_, i) => [i, 7 - i]);
  assert.deepEqual(boundsOf({shapes: [many]}), [0, -299992, 299999, 7]);
});

test("same labels have one hue, and hues go round", () => {
  assert.deepEqual(huesOf(["a", "b", "a", "c", "d"].map((label) => ({label})), 3), [0, 1, 0, 2, 0]);
  assert.deepEqual(huesOf([], 3), []);
});

test("how a picture was taken, in words", () => {
  const picture = {width: 640, height: 480, used_width: 384, used_height: 380, tiles: 1, positions: 577};
  assert.equal(pictureWords(picture), "picture 640 \u00d7 480, used 384 \u00d7 380, 577 positions");
  assert.equal(pictureWords({...picture, tiles: 4, positions: 1}), "picture 640 \u00d7 480, used 384 \u00d7 380, 4 tiles, 1 position");
});
