// Which piece of a segment's text is which word of the reply. Words come stripped of blanks and sometimes of
// punctuation, and not every language puts blanks between them: the segment's text is what is shown, the words only
// say when. No DOM.

/**
 * A segment's text in pieces, [{text, word}], word null between words. Put together they are the text; a word that
 * does not stand in it (rewritten by punctuation or normalisation) is left out, and its time with it.
 */
export function piecesOf(text, words) {
  const pieces = [];
  let at = 0;
  for (const word of words) {
    const spelled = word.word.trim();
    const found = spelled ? text.indexOf(spelled, at) : -1;
    // Far ahead it is another word that is spelled alike; to take it would lose all words between.
    if (found < 0 || found - at > 40) continue;
    if (found > at) pieces.push({text: text.slice(at, found), word: null});
    pieces.push({text: spelled, word});
    at = found + spelled.length;
  }
  if (at < text.length) pieces.push({text: text.slice(at), word: null});
  return pieces;
}

/** Index of the item that plays at `time`, or was last to: items in order of start. -1 before the first. */
export function indexAt(items, time) {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle].start <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
