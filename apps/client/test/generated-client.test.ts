/** A client that an official generator makes of the document: its types fit, and it sends a file. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { afterAll, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';
import createClient from 'openapi-fetch';
import openapiTS, { astToString } from 'openapi-typescript';
import type { OpenAPI3 } from 'openapi-typescript';
import ts from 'typescript';

import { AUTHORIZATION, expectNoSecrets } from './support/service.js';
import { CONTENT, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

interface Target {
  readonly baseUrl: string;
  readonly authorization: string;
  readonly port: number;
  readonly fileContent: string;
}

type SendFile = (create: typeof createClient, target: Target) => Promise<unknown>;

/** As a user of the generator would write it. */
const CLIENT = `
import type createClient from 'openapi-fetch';
import type { paths } from './schema.js';

interface Target { baseUrl: string; authorization: string; port: number; fileContent: string }

export const sendFile = async (create: typeof createClient, { baseUrl, authorization, port, fileContent }: Target) => {
  const client = create<paths>({ baseUrl, headers: { Authorization: authorization } });
  const body = { name: 'bank', host: '127.0.0.1', port, serverId: 'BANKSRV', clientId: 'NODE1' };
  const made = await client.POST('/api/v1/servers', { body });
  if (made.data === undefined) throw new Error(made.error.message);
  const file = { serverId: made.data.id, virtualFile: 'FILE', remoteFilename: 'hello', fileContent };
  const sent = await client.POST('/api/v1/transfers/send', { params: { query: { wait: '90' } }, body: file });
  if (sent.data === undefined) throw new Error(sent.error.message);
  let transfer = sent.data;
  while (transfer.status === 'PENDING' || transfer.status === 'IN_PROGRESS') {
    const asked = await client.GET('/api/v1/transfers/{id}', { params: { path: { id: transfer.id } } });
    if (asked.data === undefined) throw new Error(asked.error.message);
    transfer = asked.data;
  }
  const query = { status: 'COMPLETED', direction: 'SEND', serverId: String(made.data.id), size: '5' } as const;
  const { data: page } = await client.GET('/api/v1/transfers/history', { params: { query } });
  const refused = await client.GET('/api/v1/transfers/history', { params: { query: { page: '-1' } } });
  const { error } = refused;
  return {
    status: transfer.status,
    size: transfer.size,
    listed: page?.content.map(({ id }) => id === transfer.id),
    refused: error !== undefined && 'details' in error ? error.details?.map(({ field }) => field) : undefined,
  };
};
`;

/** What the types must not let through. */
const WRONG = `
import createClient from 'openapi-fetch';
import type { paths } from './schema.js';
const client = createClient<paths>({ baseUrl: '' });
void client.POST('/api/v1/servers', { body: { name: 'bank' } });
void client.GET('/api/v1/transfers/history', { params: { query: { status: 'DONE' } } });
void client.GET('/api/v1/transfer');
`;

/** Beside this file, so that packages are found. */
const virtual = (name: string): string => join(import.meta.dirname, name);

const OPTIONS: ts.CompilerOptions = {
  ...{ strict: true, noEmit: true, skipLibCheck: true, types: [], lib: ['lib.es2023.d.ts', 'lib.dom.d.ts'] },
  ...{ target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.NodeNext },
  ...{ moduleResolution: ts.ModuleResolutionKind.NodeNext },
};

/** What TypeScript says of these texts, by file. */
const complaints = (texts: Readonly<Record<string, string>>): Readonly<Record<string, readonly string[]>> => {
  const files = new Map(Object.entries(texts).map(([name, text]) => [virtual(name), text]));
  const real = ts.createCompilerHost(OPTIONS);
  const host: ts.CompilerHost = {
    ...real,
    fileExists: (path) => files.has(path) || real.fileExists(path),
    readFile: (path) => files.get(path) ?? real.readFile(path),
    getSourceFile: (path, version, ...rest) => {
      const text = files.get(path);
      return text === undefined ? real.getSourceFile(path, version, ...rest) : ts.createSourceFile(path, text, version);
    },
  };
  const program = ts.createProgram({ rootNames: [...files.keys()], options: OPTIONS, host });
  return Object.fromEntries(
    Object.keys(texts).map((name) => [
      name,
      ts
        .getPreEmitDiagnostics(program, program.getSourceFile(virtual(name)))
        .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n')),
    ]),
  );
};

withDatabase((harness) => {
  const world = useWorld(harness);

  test('openapi-typescript makes types of the document, and a client with them sends a file', async () => {
    const [service, partner] = [await world.service(), await world.partner()];
    const document = (await service.api.document()).body as OpenAPI3;
    // A field with a default need not be given.
    const schema = astToString(await openapiTS(document, { defaultNonNullable: false }));
    const said = complaints({ 'schema.d.ts': schema, 'client.ts': CLIENT, 'wrong.ts': WRONG });
    expect(said).toMatchObject({ 'schema.d.ts': [], 'client.ts': [] });
    expect(said['wrong.ts']).toHaveLength(3);

    const folder = await mkdtemp(join(tmpdir(), 'pesit-generated-'));
    try {
      const path = join(folder, 'client.mjs');
      const compilerOptions = { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext };
      await writeFile(path, ts.transpileModule(CLIENT, { compilerOptions }).outputText);
      const { sendFile } = (await import(pathToFileURL(path).href)) as { readonly sendFile: SendFile };
      const baseUrl = `http://127.0.0.1:${service.http.port}`;
      const target = { baseUrl, authorization: AUTHORIZATION, port: partner.port, fileContent: CONTENT };
      expect(await sendFile(createClient, target)).toEqual({
        ...{ status: 'COMPLETED', size: 11, listed: [true], refused: ['page'] },
      });
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
