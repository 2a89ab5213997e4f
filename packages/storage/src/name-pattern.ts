import { createHash } from 'node:crypto';

/** Values of the placeholders of a receiveFilenamePattern (interface specification, Virtual file). */
export interface NameValues {
  /** PI 3. */
  readonly partner: string;
  /** PI 12. */
  readonly virtualFile: string;
  /** PI 13. */
  readonly transferId: string | number;
  /** Given by the caller, so that the same transfer keeps its name. */
  readonly uuid: string;
}

type Expand = (values: NameValues, date: Date) => string;

const digits = (value: number, width: number) => String(value).padStart(width, '0');
const day = (date: Date) => digits(date.getFullYear(), 4) + digits(date.getMonth() + 1, 2) + digits(date.getDate(), 2);
const time = (date: Date) => digits(date.getHours(), 2) + digits(date.getMinutes(), 2) + digits(date.getSeconds(), 2);

/** Times are those of the process's time zone: operators look for files by their own clock. */
const PLACEHOLDERS: Readonly<Record<string, Expand>> = {
  partner: ({ partner }) => partner,
  virtualFile: ({ virtualFile }) => virtualFile,
  transferId: ({ transferId }) => String(transferId),
  timestamp: (_, date) => `${day(date)}_${time(date)}`,
  date: (_, date) => day(date),
  time: (_, date) => time(date),
  year: (_, date) => digits(date.getFullYear(), 4),
  month: (_, date) => digits(date.getMonth() + 1, 2),
  day: (_, date) => digits(date.getDate(), 2),
  uuid: ({ uuid }) => uuid,
};

/**
 * Identifiers may hold a `_`: without more `A` with `B_C` and `A_B` with `C` would give one name. In this pattern, and no other,
 * they are escaped as in a URL (RFC 3986 §2.1): cut at each `_`, a name has the same five parts, whatever they hold.
 */
export const DEFAULT_RECEIVE_PATTERN = '${partner}_${virtualFile}_${timestamp}_${transferId}';

const PLACEHOLDER = /\$\{([^{}]*)\}/g;
const MAX_PATTERN = 1024;
const DEVICE = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;
/** NAME_MAX of every common file system, in bytes. */
const MAX_COMPONENT = 255;

/**
 * Checks a receiveFilenamePattern.
 * @returns undefined when it can be used, else a sentence for the administrator (a 400)
 */
export const validatePattern = (pattern: string): string | undefined => {
  if (pattern === '') return 'the pattern is empty';
  if (pattern.length > MAX_PATTERN) return `the pattern is longer than ${MAX_PATTERN} characters`;
  if (/\p{C}/u.test(pattern)) return 'the pattern contains a control character';
  if (pattern.includes('\\')) return 'the pattern contains "\\": use "/" for sub-directories';
  const unknown = [...pattern.matchAll(PLACEHOLDER)].map(([, name = '']) => name).find((name) => !isPlaceholder(name));
  if (unknown !== undefined) {
    const known = Object.keys(PLACEHOLDERS).map((name) => `\${${name}}`);
    return `unknown placeholder \${${unknown}}: available are ${known.join(', ')}`;
  }
  const literal = pattern.replace(PLACEHOLDER, 'x');
  if (literal.includes('${')) return 'a placeholder is not closed: write ${name}';
  if (literal.startsWith('/') || /^[A-Za-z]:/.test(pattern))
    return 'the pattern must be relative to the receive directory';
  for (const segment of literal.split('/')) {
    if (segment === '') return 'the pattern contains an empty directory or file name';
    if (segment.startsWith('.')) return `"${segment}": a directory or file name must not begin with a dot`;
    if (Buffer.byteLength(segment) > MAX_COMPONENT)
      return `a directory or file name is longer than ${MAX_COMPONENT} bytes`;
  }
  return undefined;
};

/**
 * The path, relative to the receive directory, that a valid pattern gives. Every value becomes part of one path
 * component, whatever a peer put in it.
 * @throws RangeError for a pattern that `validatePattern` refuses
 */
export const expandPattern = (pattern: string, values: NameValues, date: Date): string => {
  const fault = validatePattern(pattern);
  if (fault !== undefined) throw new RangeError(fault);
  const { partner, virtualFile } = values;
  const told =
    pattern === DEFAULT_RECEIVE_PATTERN
      ? { ...values, partner: escaped(partner), virtualFile: escaped(virtualFile) }
      : values;
  return pattern
    .split('/')
    .map((segment) => segment.replace(PLACEHOLDER, (_, name: string) => sanitiseValue(expand(name, told, date))))
    .map(fitComponent)
    .join('/');
};

/**
 * Makes one path component of a value: separators, characters that a file system or a shell minds, control and
 * invisible characters become `_`, as do leading dots; device names of Windows get a `_` in front.
 */
export const sanitiseValue = (value: string): string => {
  const plain = value
    .replace(/[/\\:*?"<>|\p{C}\p{Zl}\p{Zp}\uFFFD]/gu, '_')
    .trim()
    .replace(/^\.+/, (dots) => '_'.repeat(dots.length));
  if (plain === '') return '_';
  return fitComponent(DEVICE.test(plain) ? `_${plain}` : plain);
};

/** Escapes the separator of the default pattern, and every character that would make `sanitiseValue` give two identifiers one form. */
const escaped = (identifier: string): string => {
  const plain = identifier.replace(/[_%]|^\./g, percent);
  return DEVICE.test(plain) ? plain.replace(/^./, percent) : plain;
};

const percent = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;

const isPlaceholder = (name: string) => Object.hasOwn(PLACEHOLDERS, name);
const expand = (name: string, values: NameValues, date: Date) => PLACEHOLDERS[name]?.(values, date) ?? '';

/** Cuts what a file system would refuse, with a digest of the whole at the end so that two long names stay two. */
const fitComponent = (component: string): string => {
  if (Buffer.byteLength(component) <= MAX_COMPONENT) return component;
  const digest = createHash('sha256').update(component).digest('hex').slice(0, 8);
  // A character cut in two at the end decodes to U+FFFD.
  const kept = Buffer.from(component)
    .subarray(0, MAX_COMPONENT - 1 - digest.length)
    .toString()
    .replace(/\uFFFD+$/, '');
  return `${kept}~${digest}`;
};
