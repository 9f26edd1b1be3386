// JSON as the text that it is. Reading a payload into numbers would change those beyond 2^53, the order of keys and
// keys that stand twice; somebody who looks for a fault must see what the receiver sees.

/** The text of a member of the object that this text holds, or undefined. */
export function memberText(text, name) {
  let at = skipSpace(text, skipSpace(text, 0) + 1);
  let found;
  while (text[at] === '"') {
    const key = JSON.parse(text.slice(at, (at = endOfValue(text, at))));
    at = skipSpace(text, skipSpace(text, at) + 1);
    const start = at;
    at = endOfValue(text, at);
    if (key === name) found = text.slice(start, at);
    at = skipSpace(text, at);
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return found;
}

/** The same JSON over several lines, every token as it was written. */
export function indented(text) {
  const parts = [];
  let depth = 0;
  let at = 0;
  const newLine = () => parts.push("\n", "  ".repeat(depth));
  while ((at = skipSpace(text, at)) < text.length) {
    const character = text[at];
    if (character === "{" || character === "[") {
      const next = skipSpace(text, at + 1);
      if (text[next] === "}" || text[next] === "]") {
        parts.push(character, text[next]);
        at = next + 1;
        continue;
      }
      depth += 1;
      parts.push(character);
      newLine();
    } else if (character === "}" || character === "]") {
      depth -= 1;
      newLine();
      parts.push(character);
    } else if (character === ",") {
      parts.push(character);
      newLine();
    } else if (character === ":") {
      parts.push(": ");
    } else {
      const end = Math.max(endOfValue(text, at), at + 1);
      parts.push(text.slice(at, end));
      at = end;
      continue;
    }
    at += 1;
  }
  return parts.join("");
}

function skipSpace(text, at) {
  while (text[at] === " " || text[at] === "\n" || text[at] === "\r" || text[at] === "\t") at += 1;
  return at;
}

/** Where the value that begins here ends. */
function endOfValue(text, at) {
  if (text[at] === '"') return endOfString(text, at);
  if (text[at] !== "{" && text[at] !== "[") {
    while (at < text.length && !',]}: \n\r\t'.includes(text[at])) at += 1;
    return at;
  }
  let depth = 0;
  while (at < text.length) {
    if (text[at] === '"') {
      at = endOfString(text, at);
      continue;
    }
    if (text[at] === "{" || text[at] === "[") depth += 1;
    if (text[at] === "}" || text[at] === "]") depth -= 1;
    at += 1;
    if (depth === 0) break;
  }
  return at;
}

function endOfString(text, at) {
  for (at += 1; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at + 1;
  }
  return at;
}
