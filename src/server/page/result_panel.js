// What came of a run: status, text, how long it took, and the files to take away.
import {byId, clockTime} from "./dom.js";
import {languageName} from "./languages.js";
import {PictureAnswer} from "./picture_answer.js";
import {pictureWords, splitStructured} from "./regions.js";
import {downloadName, toJson, toSrt, toTxt, toVtt} from "./subtitles.js";
import {Transcript} from "./transcript.js";

const kWriters = {
  txt: toTxt,
  json: (reply) => toJson(reply.structured ?? reply),
  srt: (reply) => toSrt(reply.segments),
  vtt: (reply) => toVtt(reply.segments),
};
const kTypes = {txt: "text/plain", srt: "application/x-subrip", vtt: "text/vtt", json: "application/json"};

/** Gives text to the browser as a file to keep. */
function save(text, name, type) {
  const address = URL.createObjectURL(new Blob([text], {type}));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

const capitalised = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export class ResultPanel {
  #reply = null;
  #source = "";        // name of the file that the text is of
  #segments = [];      // of the run that is under way
  #subtitles = null;   // async (format) -> text: the server's own, where the reply has no times

  constructor(player) {
    this.player = player;
    this.section = byId("result");
    this.status = byId("status");
    this.meta = byId("meta");
    this.progress = byId("progress");
    this.downloads = byId("downloads");
    this.empty = byId("empty");
    this.transcript = new Transcript(byId("transcript"), player.audio, byId("transcript-hint"));
    this.pictureAnswer = new PictureAnswer();
    byId("copy").addEventListener("click", () => this.#copy(toTxt(this.#reply)));
    byId("copy-structured").addEventListener("click", () => this.#copy(byId("structured-json").textContent));
    for (const button of this.downloads.querySelectorAll("[data-download]")) {
      button.addEventListener("click", () => this.#download(button));
    }
  }

  /** words: for eyes and ears; tone "busy", "good", "bad" or "". */
  say(words, tone = "") {
    this.status.textContent = words;
    this.status.dataset.tone = tone;
  }

  clear() {
    byId("live-turns").hidden = true;
    this.#reply = null;
    this.#segments = [];
    this.transcript.clear();
    this.pictureAnswer.clear();
    this.progress.hidden = true;
    this.meta.textContent = "";
    this.downloads.hidden = true;
    this.empty.hidden = false;
    this.say("");
  }

  begin(words) {
    this.clear();
    this.empty.hidden = true;
    this.#setBusy(true);  // the text alone: what the status says is to be heard
    this.say(words, "busy");
    this.#bringIntoView();
  }

  #setBusy(busy) { this.transcript.root.setAttribute("aria-busy", String(busy)); }

  // Where the result stands below the form, who started a run would not see it.
  #bringIntoView() {
    if (this.section.getBoundingClientRect().top < 0.4 * window.innerHeight) return;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.section.scrollIntoView({block: "start", behavior: calm ? "auto" : "smooth"});
  }

  append(text) { this.transcript.append(text); }

  /** A segment of verbose_json with its `words`, which may be none. */
  addSegment(segment) {
    this.#segments.push(segment);
    this.transcript.addSegment(segment, this.player.playable);
  }

  /** Seconds of the audio that are done, of all. Not in the status: it would be read out each time. */
  showProgress(done, all) {
    this.progress.hidden = false;
    this.progress.max = all;
    this.progress.value = done;
    this.#showMeta([`${clockTime(done)} of ${clockTime(all)}`]);
  }

  #end() {
    this.#setBusy(false);
    this.progress.hidden = true;
  }

  /** Live text follows, which stands in an element of its own. */
  beginLive(words) {
    this.clear();
    this.empty.hidden = true;
    this.say(words, "busy");
    this.#bringIntoView();
  }

  /** segments: what was said, each with start, end and text. */
  showLive(segments) {
    this.say(segments.length > 0 ? `Done: ${segments.length} turn${segments.length === 1 ? "" : "s"}` : "Nothing was said.", "good");
    if (segments.length === 0) return;
    this.#offer({text: segments.map((segment) => segment.text).join(" "), segments}, Object.keys(kWriters), "live");
  }

  /** The run is over without a reply; what streamed so far stays, and may be taken away. */
  stop(words, tone) {
    this.#end();
    this.transcript.settle();
    if (this.#segments.length > 0) {
      this.#offer({segments: this.#segments}, ["txt", "srt", "vtt"], "transcript");
    } else if (this.transcript.root.textContent) {
      this.#offer({text: this.transcript.root.textContent}, ["txt"], "transcript");
    }
    this.say(words, tone);
  }

  showAudio(reply, {file, seconds, language, codes, subtitles}) {
    this.#end();
    const timed = this.#segments.length > 0;  // they stand there already
    if (!timed) this.transcript.showText(reply.text || "(no speech)");
    const code = language || codes.find((each) => languageName(each).toLowerCase() === reply.language?.toLowerCase());
    if (code) this.transcript.root.lang = code;
    const known = !timed && !subtitles ? ["txt", "json"] : Object.keys(kWriters);
    this.#subtitles = subtitles;
    this.#offer(reply, known, file.name);
    this.#showMeta([reply.language && capitalised(reply.language), ...this.#lengths(reply, seconds)]);
    this.say(timed ? `Done: ${reply.segments.length} segment${reply.segments.length === 1 ? "" : "s"}` : "Done", "good");
  }

  showText(reply, {seconds, notes = []}) {
    this.#end();
    this.transcript.showText(reply.text || "(an empty answer)");
    this.#offer(reply, ["txt"], "answer");
    this.#showCost(reply, seconds, notes);
    this.say("Done", "good");
  }

  /** An answer to a picture ({name, address}); its `structured` and `images` may be absent. */
  showPicture(reply, {picture, seconds, notes = []}) {
    this.#end();
    const {regions, rest} = splitStructured(reply.structured);
    this.transcript.showText(reply.text || "(an empty answer)");
    if (regions) this.pictureAnswer.showRegions(regions, picture.address, reply.images?.[0]);
    if (rest !== null) this.pictureAnswer.showJson(rest);
    this.#offer(reply, (reply.structured ?? null) === null ? ["txt"] : ["txt", "json"], picture.name);
    this.#showCost(reply, seconds, [...(reply.images ?? []).map(pictureWords), ...notes]);
    const count = regions?.length ?? 0;
    this.say(regions ? `Done: ${count} region${count === 1 ? "" : "s"}` : "Done", "good");
  }

  #showCost({usage}, seconds, notes) {
    const tokens = usage?.completion_tokens;
    this.#showMeta([tokens !== undefined && `${tokens} tokens`, `${seconds.toFixed(1)} s`, ...notes]);
  }

  #lengths(reply, seconds) {
    const duration = reply.duration ?? reply.usage?.seconds ?? this.player.audio.duration;
    if (!Number.isFinite(duration)) return [`${seconds.toFixed(1)} s`];
    const speed = duration / seconds;
    return [`${clockTime(duration)} of audio in ${seconds.toFixed(1)} s`,
            `${speed.toFixed(speed < 10 ? 1 : 0)}\u00d7 real time`];
  }

  #showMeta(parts) { this.meta.textContent = parts.filter(Boolean).join("  \u00b7  "); }

  #offer(reply, formats, source) {
    this.#reply = reply;
    this.#source = source;
    this.downloads.hidden = false;
    for (const button of this.downloads.querySelectorAll("[data-download]")) {
      button.hidden = !formats.includes(button.dataset.download);
    }
  }

  async #copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      this.say("Copied", "good");
    } catch {
      this.say("The browser did not allow copying. Select the text instead.", "bad");
    }
  }

  async #download(button) {
    const format = button.dataset.download;
    const reply = this.#reply;
    let text;
    if ((format === "srt" || format === "vtt") && !reply.segments?.length) {
      text = await this.#fetchSubtitles(button, format);
      if (text === null || this.#reply !== reply) return;
    } else {
      text = kWriters[format](reply);
    }
    save(text, downloadName(this.#source, format), kTypes[format]);
  }

  // The text came without times: the server is asked to write them, which means decoding once more.
  async #fetchSubtitles(button, format) {
    this.say("Asking the server for times\u2026", "busy");
    button.disabled = true;
    try {
      const text = await this.#subtitles(format);
      this.say("Done", "good");
      return text;
    } catch (error) {
      this.say(error.message, "bad");
      return null;
    } finally {
      button.disabled = false;
    }
  }
}
