/** One place of a pattern: a set of characters, any one character, or any number of them. */
type Token =
  { readonly kind: 'any' | 'many' } | { readonly kind: 'set'; readonly not: boolean; readonly ranges: Ranges };
type Ranges = readonly (readonly [low: string, high: string])[];

/**
 * Whether a file name matches a pattern: `*` any characters, `?` one, `[abc]`, `[a-z]`, `[!abc]` one of a set.
 * Case counts; a `[` that is never closed stands for itself. Only the last `*` is ever tried again, so the time is at
 * most length of the pattern × length of the name: no pattern and no name can make it explode.
 */
export const matchesGlob = (pattern: string, name: string): boolean => globOf(pattern)(name);

/** The same for many names: the pattern is read once. */
export const globOf = (pattern: string): ((name: string) => boolean) => {
  const tokens = tokensOf(Array.from(pattern));
  return (name) => matches(tokens, name);
};

const matches = (tokens: readonly Token[], name: string): boolean => {
  const characters = Array.from(name);
  let token = 0;
  let at = 0;
  let star = -1;
  let starAt = 0;
  while (at < characters.length) {
    const current = tokens[token];
    if (current?.kind === 'many') {
      star = token++;
      starAt = at;
    } else if (current && accepts(current, characters[at] ?? '')) {
      token += 1;
      at += 1;
    } else if (star >= 0) {
      token = star + 1;
      at = ++starAt;
    } else {
      return false;
    }
  }
  return tokens.slice(token).every(({ kind }) => kind === 'many');
};

const accepts = (token: Token, character: string): boolean => {
  if (token.kind !== 'set') return true;
  return token.ranges.some(([low, high]) => character >= low && character <= high) !== token.not;
};

const tokensOf = (pattern: readonly string[]): readonly Token[] => {
  const tokens: Token[] = [];
  // Once a bracket found no end, none of the later ones has one: without this a row of them costs quadratic time.
  const lastClose = pattern.lastIndexOf(']');
  for (let i = 0; i < pattern.length; i++) {
    const character = pattern[i] ?? '';
    if (character === '*') tokens.push({ kind: 'many' });
    else if (character === '?') tokens.push({ kind: 'any' });
    else {
      const not = pattern[i + 1] === '!' || pattern[i + 1] === '^';
      const first = i + (not ? 2 : 1);
      // A `]` right after the opening belongs to the set.
      const close = character === '[' && first < lastClose ? pattern.indexOf(']', first + 1) : -1;
      if (close === -1) {
        tokens.push({ kind: 'set', not: false, ranges: [[character, character]] });
      } else {
        tokens.push({ kind: 'set', not, ranges: rangesOf(pattern.slice(first, close)) });
        i = close;
      }
    }
  }
  return tokens;
};

const rangesOf = (members: readonly string[]): Ranges => {
  const ranges: [string, string][] = [];
  for (let i = 0; i < members.length; i++) {
    const low = members[i] ?? '';
    const high = members[i + 2];
    if (members[i + 1] === '-' && high !== undefined) {
      ranges.push([low, high]);
      i += 2;
    } else {
      ranges.push([low, low]);
    }
  }
  return ranges;
};
