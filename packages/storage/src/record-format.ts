import type { CodePage } from '@pesit-node/protocol';
import { StorageError } from './errors.js';

/** Record formats as the field names them (pesit-e.md §6): binary or text; undefined, variable or fixed length. */
export type RecordFormatName = 'BU' | 'BV' | 'BF' | 'TV' | 'TF';

/** PI 31: one mask byte, 0x00 fixed, 0x80 (128) variable. */
export type RecordFormatCode = 0 | 128;

export interface RecordFormat {
  readonly name: RecordFormatName;
  /** PI 31. */
  readonly recordFormat: RecordFormatCode;
  /** PI 32: longest article, in bytes, 1..65535. */
  readonly recordLength: number;
  readonly text: boolean;
  /** Text whose articles are EBCDIC of this code page (PI 16); undefined: as in the file, or binary. */
  readonly codePage: CodePage | undefined;
}

/** The fields of a virtual file or a send request that decide its format. */
export interface RecordSettings {
  readonly recordFormat?: number | undefined;
  readonly recordLength?: number | undefined;
  readonly text?: boolean | undefined;
  /** The articles are EBCDIC; without meaning for binary files, which are never translated. */
  readonly codePage?: CodePage | undefined;
}

/** PI 31 and PI 32 as the sender announced them in CREATE or ACK(SELECT). */
export interface AnnouncedRecords {
  readonly recordFormat?: number | undefined;
  readonly recordLength: number;
}

export const DEFAULT_RECORD_LENGTH = 4096;
export const MAX_RECORD_LENGTH = 65_535;

/**
 * The format of a file to send: 0 is fixed, 128 variable; with `text` TF and TV, without BF and BV; binary with no
 * `recordFormat` is BU.
 * @throws StorageError 2-200 (local) for a `recordFormat` other than 0 or 128, or a `recordLength` outside 1..65535
 */
export const formatOf = (settings: RecordSettings): RecordFormat => {
  const { recordFormat, recordLength = DEFAULT_RECORD_LENGTH, text = false, codePage } = settings;
  if (recordFormat !== undefined && !isFormatCode(recordFormat)) throw wrongFormat(recordFormat, 'local');
  if (!isRecordLength(recordLength)) throw wrongLength(recordLength, 'local');
  const name = nameOf(recordFormat, text);
  return { name, recordFormat: recordFormat ?? 128, recordLength, text, codePage: text ? codePage : undefined };
};

/**
 * The format in which a receiver takes a file: lengths and fixed or variable from the sender, text or binary from the
 * virtual file (a flat binary file and a text file look the same in PI 31/32). A sender that leaves PI 31 out is taken
 * as the virtual file has it, else as variable.
 *
 * The settings of the virtual file are limits: pass `recordFormat` or `recordLength` only where an administrator set them.
 * @throws StorageError 2-200 (remote) PI 32 is 0 or PI 31 unknown; 2-220 announced longer than the virtual file allows;
 *   2-226 fixed announced for a variable file or the reverse
 */
export const receivedFormat = (announced: AnnouncedRecords, virtualFile: RecordSettings = {}): RecordFormat => {
  const { recordLength } = announced;
  const text = virtualFile.text ?? false;
  const code = announced.recordFormat ?? virtualFile.recordFormat;
  if (code !== undefined && !isFormatCode(code)) throw wrongFormat(code, 'remote');
  if (!isRecordLength(recordLength)) throw wrongLength(recordLength, 'remote');
  if (virtualFile.recordFormat !== undefined && code !== virtualFile.recordFormat) {
    throw new StorageError(
      `the sender announces ${describe(code)} records, the virtual file takes ${describe(virtualFile.recordFormat)} ones: align recordFormat on both sides`,
      { fault: 'remote', diagnostic: '2-226', expected: String(virtualFile.recordFormat), got: String(code) },
    );
  }
  if (virtualFile.recordLength !== undefined && recordLength > virtualFile.recordLength) {
    throw new StorageError(
      `the sender announces records of ${recordLength} bytes, the virtual file takes at most ${virtualFile.recordLength}: raise its recordLength, or shorten the records`,
      { fault: 'remote', diagnostic: '2-220', expected: `<= ${virtualFile.recordLength}`, got: String(recordLength) },
    );
  }
  const codePage = text ? virtualFile.codePage : undefined;
  return { name: nameOf(code, text), recordFormat: code ?? 128, recordLength, text, codePage };
};

const nameOf = (code: RecordFormatCode | undefined, text: boolean): RecordFormatName => {
  if (text) return code === 0 ? 'TF' : 'TV';
  if (code === undefined) return 'BU';
  return code === 0 ? 'BF' : 'BV';
};

const isFormatCode = (code: number): code is RecordFormatCode => code === 0 || code === 128;
const isRecordLength = (length: number) => Number.isInteger(length) && length >= 1 && length <= MAX_RECORD_LENGTH;
const describe = (code: number | undefined) => (code === 0 ? 'fixed' : 'variable');

const wrongFormat = (code: number, fault: 'local' | 'remote') => {
  const peerText = `record format ${code} does not exist: use 0 (fixed) or 128 (variable)`;
  const got = String(code);
  return new StorageError(peerText, { fault, diagnostic: '2-200', peerText, expected: '0 or 128', got });
};

const wrongLength = (length: number, fault: 'local' | 'remote') => {
  const expected = `1..${MAX_RECORD_LENGTH}`;
  const peerText = `record length ${length} cannot be used: it must be a whole number from 1 to ${MAX_RECORD_LENGTH}`;
  return new StorageError(peerText, { fault, diagnostic: '2-200', peerText, expected, got: String(length) });
};
