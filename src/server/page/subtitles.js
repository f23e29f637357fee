// Subtitle files from the segments of a verbose_json reply: the bytes that the server writes for its own srt and vtt
// formats (openai-whisper's writers), so that it does not matter who made the file. No DOM.

/** Seconds as 01:02:03,456; without the hour if `alwaysHours` is false and there is none. */
export function formatTimestamp(seconds, alwaysHours, decimalMark) {
  const ms = Math.max(0, Math.round(seconds * 1000));
  const pad = (value, width = 2) => String(value).padStart(width, "0");
  const hours = Math.floor(ms / 3600000);
  const front = alwaysHours || hours > 0 ? `${pad(hours)}:` : "";
  return `${front}${pad(Math.floor(ms / 60000) % 60)}:${pad(Math.floor(ms / 1000) % 60)}${decimalMark}${pad(ms % 1000, 3)}`;
}

// An arrow in the text would read as a line of times.
const cueText = (segment) => segment.text.trim().replaceAll("-->", "->");

export function toSrt(segments) {
  return segments.map((segment, index) => {
    const times = [segment.start, segment.end].map((time) => formatTimestamp(time, true, ","));
    return `${index + 1}\n${times.join(" --> ")}\n${cueText(segment)}\n\n`;
  }).join("");
}

export function toVtt(segments) {
  return "WEBVTT\n\n" + segments.map((segment) => {
    const times = [segment.start, segment.end].map((time) => formatTimestamp(time, false, "."));
    return `${times.join(" --> ")}\n${cueText(segment)}\n\n`;
  }).join("");
}

/** A line a segment; a text without segments as it is. */
export function toTxt(reply) {
  const lines = reply.segments?.length ? reply.segments.map((segment) => segment.text.trim()) : [reply.text.trim()];
  return lines.join("\n") + "\n";
}

export const toJson = (reply) => JSON.stringify(reply, null, 2) + "\n";

/** talk.final.mp3 -> talk.final.srt; what no file system likes is replaced. */
export function downloadName(sourceName, extension) {
  const stem = (sourceName || "transcript").replace(/\.[^.]{1,5}$/, "").replace(/[\\/:*?"<>|\u0000-\u001f]/g, "_");
  return `${stem || "transcript"}.${extension}`;
}
