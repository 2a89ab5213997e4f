import { CODE_PAGES } from '@pesit-node/protocol';
import { z } from 'zod';

/** The settings that a remote server has and a single transfer may change (specification, Send payload; design §4). */
export const transferSettings = {
  recordLength: z.int().min(1).max(65_535),
  recordFormat: z
    .union([z.literal(0), z.literal(128)], 'expected 0 (fixed) or 128 (variable)')
    .meta({ description: '0 fixed, 128 variable.' }),
  text: z.boolean(),
  maxEntitySize: z.int().min(256).max(65_535),
  syncInterval: z.int().min(0).max(65_534).meta({ description: 'KB; 0 = no sync points.' }),
  syncWindow: z.int().min(0).max(255).meta({ description: '0 = sync points are not acknowledged.' }),
  compression: z.enum(['none', 'horizontal', 'vertical', 'both']).meta({ description: 'PI 21.' }),
  crc: z.boolean().meta({ description: 'PI 1.' }),
  resync: z.boolean().meta({ description: 'PI 23.' }),
  ebcdic: z.boolean().meta({ description: 'PI 16: the lines of a text file are EBCDIC on the wire.' }),
  codePage: z.enum(CODE_PAGES),
  selectByName: z.boolean().meta({
    description:
      'For a RECEIVE with virtualFile and remoteFilename: PI 12 is `<virtualFile>/<remoteFilename>`, which nodes of this product answer with exactly that file.',
  }),
};
