// Names of languages for people, from the codes of many kinds of models: en, en_XX, eng_Latn, zh-cn. No DOM.

export function languageName(code, locale = "en") {
  const tag = code.replaceAll("_", "-").replace(/-XX$/, "");
  try {
    const name = new Intl.DisplayNames([locale], {type: "language"}).of(tag);
    return name && name.toLowerCase() !== tag.toLowerCase() ? name : code;
  } catch {
    return code;  // no BCP 47 tag at all
  }
}

/** [{code, name}] by name. Codes that share a name keep their code beside it. */
export function languageChoices(codes, locale = "en") {
  const choices = codes.map((code) => ({code, name: languageName(code, locale)}));
  const times = new Map();
  for (const {name} of choices) times.set(name, (times.get(name) ?? 0) + 1);
  return choices
      .map(({code, name}) => ({code, name: times.get(name) > 1 && name !== code ? `${name} (${code})` : name}))
      .sort((a, b) => a.name.localeCompare(b.name, locale));
}
