/**
 * Keys of the interface that can mean nothing true here, and why: whoever sets one is told, instead of believing that it works.
 */
const NO_GZIP =
  'PeSIT knows no GZIP, only the strings of its annex A (PI 21): set compression of the virtual file, of the remote server or of the request instead';

export const REFUSED_KEYS: Readonly<Partial<Record<string, string>>> = {
  'transfer.compression.enabled': NO_GZIP,
  'transfer.compression.algorithm': NO_GZIP,
  'transfer.compression.level': NO_GZIP,
};
