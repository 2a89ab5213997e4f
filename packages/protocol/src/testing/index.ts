/**
 * Help for the tests of every package: FPDUs written and read by hand, byte by byte from pesit-e.md, with nothing of the
 * codec under test; articles, a line in EBCDIC, and a deterministic chance. Without I/O, as all of this package: sockets are with their users.
 */
export { articlesOf, Collector, difference, fill, START } from './articles.js';
export { diagnosticOf, dissect, nameByCodes, nameOf, pointOf, summaryOf, valueOf } from './answers.js';
export type { Dissected } from './answers.js';
export { Chance } from './chance.js';
export { EBCDIC_LINE, EBCDIC_PAGES } from './ebcdic.js';
export { CODES, entity, fpdu, hex, MINIMAL, minimal, NAMES, num, pi, prefixed, text, withCrc } from './fpdus.js';
export type { Name } from './fpdus.js';
