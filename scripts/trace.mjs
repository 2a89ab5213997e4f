/**
 * `npm run trace -- FILE`: a recorded session as text, one line an FPDU; secrets masked, data summarised.
 *
 * A recording is one record an entity: 1 byte direction (0 from the requester, 1 from the server), 2 bytes big-endian length,
 * the entity without the two bytes of its length on the wire (packages/protocol/test/recordings). It has no times: the
 * number of the record stands in their place.
 */
import { readFileSync } from 'node:fs';
import { Failure, main, requireNode } from './lib/process.mjs';
import { ensureBuilt, ensureInstalled } from './lib/workspace.mjs';

const USAGE = 'npm run trace -- FILE [FILE …]     recorded sessions as text, one line an FPDU';
const ARROWS = ['-->', '<--'];
const RECORD_HEADER = 3;
const FPDU_HEADER = 6;
const CRC = 2;
/** `PESIT` and `CFTPSITX` in EBCDIC: what a pre-connection begins with (pesit-e.md §1). */
const PRECONNECTION = /^(?:d7c5e2c9e3|c3c6e3d7e2c9e3e7)/;
const PRECONNECTION_ANSWERS = { c1c3d2f0: 'ACK0: pre-connection accepted', d5c1d2f0: 'NAK0: pre-connection refused' };

function* recordsOf(file, path) {
  let number = 0;
  for (let at = 0; at < file.length;) {
    number++;
    const where = `${path}: record ${number}, at byte ${at}`;
    if (ARROWS[file[at]] === undefined)
      throw new Failure(`${where}: expected a direction, 0 or 1, got ${file[at]}: this is not a recorded session`);
    const end = file.length - at < RECORD_HEADER ? Infinity : at + RECORD_HEADER + file.readUInt16BE(at + 1);
    if (end > file.length) throw new Failure(`${where}: the file ends inside it`);
    yield { number, direction: file[at], entity: file.subarray(at + RECORD_HEADER, end) };
    at = end;
  }
}

/** The FPDUs of an entity, each with its CRC when there are some; what is left over is shown as what it is. */
function* fpdusOf(entity, hasCrc) {
  for (let at = 0; at < entity.length;) {
    const length = entity.length - at < FPDU_HEADER ? 0 : entity.readUInt16BE(at);
    const end = length < FPDU_HEADER ? entity.length : Math.min(entity.length, at + length + (hasCrc ? CRC : 0));
    yield entity.subarray(at, end);
    at = end;
  }
}

function trace(path, { describeFpdu, fromEbcdic, printable }) {
  let file;
  try {
    file = readFileSync(path);
  } catch (error) {
    throw new Failure(`${path} cannot be read: ${error.message}`);
  }
  let hasCrc;
  for (const { number, direction, entity } of recordsOf(file, path)) {
    const say = (text) => console.log(`${String(number).padStart(5)} ${ARROWS[direction]} ${text}`);
    const start = entity.toString('hex', 0, 8);
    if (hasCrc === undefined && PRECONNECTION.test(start)) {
      const identifier = Buffer.from(fromEbcdic(entity.subarray(8, 16)), 'latin1');
      say(`pre-connection of ${printable(identifier).trim()}, password ********`);
    } else if (hasCrc === undefined && PRECONNECTION_ANSWERS[start.slice(0, 8)] !== undefined) {
      say(PRECONNECTION_ANSWERS[start.slice(0, 8)]);
    } else {
      // The first entity shows whether there is a CRC: it is two bytes longer than its CONNECT.
      hasCrc ??= entity.length >= FPDU_HEADER && entity.readUInt16BE(0) + CRC === entity.length;
      for (const fpdu of fpdusOf(entity, hasCrc)) say(describeFpdu(fpdu));
    }
  }
}

await main(async () => {
  requireNode();
  const paths = process.argv.slice(2);
  if (paths.length === 0 || paths.includes('--help')) {
    console.log(USAGE);
    return paths.length === 0 ? 1 : 0;
  }
  await ensureInstalled();
  await ensureBuilt(['packages/protocol']);
  const library = await import('../packages/protocol/dist/index.js');
  for (const path of paths) {
    if (paths.length > 1) console.log(`${path}:`);
    trace(path, library);
  }
  return 0;
});
