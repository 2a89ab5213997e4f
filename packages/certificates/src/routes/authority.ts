import { X509Certificate } from 'node:crypto';

import {
  ApiError,
  notFound,
  callerOf,
  CONFIGURATION_CHANGED,
  endpoint,
  fetchPage,
  LogBudget,
  pageOf,
  timestamp,
} from '@pesit-node/service';
import type { AuditWrite, ChangeAudit, EventStream, Routes } from '@pesit-node/service';
import type { Request } from 'express';
import type { Knex } from 'knex';
import { z } from 'zod';

import type { Issue, LocalAuthority } from '../authority/authority.js';
import { KEY_TYPES } from '../authority/keys.js';
import { domain, nameText, sanList } from '../authority/names.js';
import { MAX_REQUEST, TRY_LATER } from '../authority/ocsp.js';
import { REASON_NAMES } from '../authority/reasons.js';
import type { AuthorityRow, IssuedRow } from '../authority/store.js';
import { BOUNDS } from '../bounds.js';
import { CERTIFICATE_EXAMPLE, certificateAnswer, storeName } from '../fields.js';
import { UploadError, uploadAnswer } from '../faults.js';
import { inspect } from '../inspect.js';
import { writePem } from '../read/pem.js';
import { storedCertificates } from '../stored.js';
import { issuedAsked, issuedQuery } from './issued-query.js';

export interface AuthorityRoutesDeps {
  readonly authority: LocalAuthority;
  readonly knex: Knex;
  readonly events: EventStream;
  readonly audit: Pick<ChangeAudit, 'entry'>;
}

const PATH = '/api/v1/certificates';
const CRL_TYPE = 'application/pkix-crl';
const OCSP_REQUEST = 'application/ocsp-request';
const OCSP_RESPONSE = 'application/ocsp-response';
/** Answers a minute to strangers, of an address and of all: each costs a signature, or a look at the database. */
const OPEN_RATE = { perKey: 600, total: 6000 } as const;

/** As certificates hold it: IA5String (RFC 5280 §4.2.1.6). */
const url = () =>
  z
    .url({ protocol: /^https?$/, error: 'expected a URL with http or https' })
    .max(500)
    .regex(/^[\x21-\x7e]+$/, 'expected printable ASCII without blanks: write the host as xn--…, and the rest as %XX');
const keyType = () => z.enum(KEY_TYPES).default('EC').meta({ description: '`EC` = P-256, `RSA` = 3072 bits.' });
const days = (most: number) => z.int().min(1).max(most);

const caBody = z
  .strictObject({
    commonName: nameText().meta({ example: 'Acme Internal CA' }),
    organization: nameText().nullable().optional().meta({ example: 'Acme Bank' }),
    validityDays: days(7300).default(3650),
    keyType: keyType(),
    permittedDomains: z.array(domain()).max(50).default([]).meta({
      description: 'Domains that it may issue for alone, with all names below (RFC 5280 §4.2.1.10). Empty: any.',
    }),
    crlUrl: url().nullable().optional().meta({ description: 'Where peers find its CRL: written into certificates.' }),
    ocspUrl: url().nullable().optional().meta({ description: 'Where peers reach /ocsp: written into certificates.' }),
  })
  .meta({ id: 'CreateAuthority' });

const caAnswer = z
  .object({
    certificate: z
      .string()
      .meta({ description: 'PEM: what peers put into their truststores.', example: CERTIFICATE_EXAMPLE }),
    details: certificateAnswer,
    permittedDomains: z.array(z.string()),
    crlUrl: z.string().nullable(),
    ocspUrl: z.string().nullable(),
    createdAt: timestamp(),
  })
  .meta({ id: 'Authority' });

const issueBody = z
  .strictObject({
    name: storeName().meta({ description: 'Of the keystore, or of whom it is for.', example: 'rest' }),
    commonName: nameText().meta({ example: 'node1.acme.example' }),
    sans: sanList()
      .default([])
      .meta({
        description: '`DNS:`, `IP:`, `URI:`, `email:`, or bare. Empty: the common name, if it is a host name.',
        example: ['DNS:node1.acme.example', 'IP:192.0.2.10'],
      }),
    ttlDays: days(3650).default(365).meta({ description: 'At most to the end of the CA.' }),
    kind: z.enum(['server', 'partner']).default('server').meta({
      description:
        '`server`: a managed keystore of this app, renewed in time; `partner`: a PKCS#12 with its password, shown once.',
    }),
    keyType: keyType(),
    csr: z.string().max(BOUNDS.certificateBytes).optional().meta({
      description:
        'A certificate request in PEM: it is signed, whatever the kind, and no key is made. Its names do not count.',
    }),
  })
  .meta({ id: 'IssueCertificate' });

const issueAnswer = z
  .object({
    name: z.string(),
    certificate: z.string().meta({ description: 'PEM.', example: CERTIFICATE_EXAMPLE }),
    serial: z.string(),
    fingerprint: z.string().meta({ description: 'SHA-256, hex with colons: binds a partner to it.' }),
    notAfter: timestamp(),
    keystore: z.string().nullable().meta({ description: 'The managed keystore that was made.' }),
    pkcs12: z.string().optional().meta({ description: 'Base64, for the partner.' }),
    password: z.string().optional().meta({ description: 'Opens `pkcs12`. It is shown here, and never again.' }),
  })
  .meta({ id: 'IssuedCertificate' });

const STATES = ['VALID', 'REVOKED', 'EXPIRED'] as const;

const issuedAnswer = z
  .object({
    serial: z.string(),
    name: z.string(),
    kind: z.enum(['server', 'partner']),
    state: z.enum(STATES),
    keystore: z.string().nullable(),
    subject: z.string(),
    notBefore: timestamp(),
    notAfter: timestamp(),
    issuedAt: timestamp(),
    revokedAt: timestamp().nullable(),
    reason: z.enum(REASON_NAMES).nullable(),
    certificate: z.string().meta({ example: CERTIFICATE_EXAMPLE }),
  })
  .meta({ id: 'IssuedCertificateState' });

const revokeBody = z.strictObject({
  serial: z
    .string()
    .regex(/^[0-9A-Fa-f:]{1,60}$/, 'expected the serial in hex')
    .transform((text) => text.replaceAll(':', '').toUpperCase())
    .meta({ example: '4A3F09C2D1E5B786' }),
  reason: z
    .enum(REASON_NAMES)
    .default('unspecified')
    .meta({ description: 'RFC 5280 §5.3.1. `removeFromCRL` ends `certificateHold`.', example: 'superseded' }),
});

const replaceQuery = z.strictObject({
  replace: z
    .enum(['true', 'false'], { error: 'expected true or false' })
    .transform((text) => text === 'true')
    .optional()
    .meta({ description: 'Puts it in the place of the CA that is there; what that one issued stays valid.' }),
});

const shownCa = (row: AuthorityRow) => ({
  certificate: row.certificate,
  details: storedCertificates(row.certificate).map(inspect)[0],
  permittedDomains: row.permitted_domains,
  crlUrl: row.crl_url,
  ocspUrl: row.ocsp_url,
  createdAt: row.created_at.toISOString(),
});

const shownIssue = ({ row, ...once }: Issue) => ({
  ...{ name: row.name, certificate: row.certificate, serial: row.serial, keystore: row.keystore },
  ...{ fingerprint: new X509Certificate(row.certificate).fingerprint256, notAfter: row.not_after.toISOString() },
  ...once,
});

const shownIssued = (row: IssuedRow) => ({
  ...{ serial: row.serial, name: row.name, kind: row.kind, keystore: row.keystore, certificate: row.certificate },
  state: row.revoked_at !== null ? 'REVOKED' : row.not_after.getTime() <= Date.now() ? 'EXPIRED' : 'VALID',
  subject: storedCertificates(row.certificate).map(inspect)[0]?.subject ?? '',
  ...{ notBefore: row.not_before.toISOString(), notAfter: row.not_after.toISOString() },
  ...{ issuedAt: row.issued_at.toISOString(), revokedAt: row.revoked_at?.toISOString() ?? null, reason: row.reason },
});

const HOST_NAME = /^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/i;
const withName = <B extends z.output<typeof issueBody>>(body: B): B =>
  body.sans.length === 0 && HOST_NAME.test(body.commonName) ? { ...body, sans: [`DNS:${body.commonName}`] } : body;

type Told = Readonly<Record<string, unknown>> & { readonly object: string | undefined };

const NO_CA = { 409: 'There is no CA, or it is in the way: the message says which.' } as const;

/** The endpoints of the local CA. */
export const authorityRoutes = (routes: Routes, { authority, knex, events, audit }: AuthorityRoutesDeps): void => {
  /** @param entry the object of the audit entry, and what it says of it */
  const audited =
    <Row>(req: Request, objectType: string, action: 'created' | 'changed', entry: (row: Row) => Told) =>
    (row: Row): AuditWrite => {
      const { object, ...details } = entry(row);
      return audit.entry({ by: callerOf(req), action, objectType, object, details });
    };
  const say = (req: Request, what: string, action: 'created' | 'changed', facts: object): void =>
    events.publish(CONFIGURATION_CHANGED, { what, action, facts: { ...facts }, by: callerOf(req), recorded: true });

  routes.resource(`${PATH}/ca`, {
    get: endpoint({ summary: 'The local CA', answers: { 200: caAnswer, 404: 'There is none.' } }, async ({ res }) => {
      const row = await authority.current();
      if (row === undefined)
        throw new ApiError('NOT_FOUND', 'There is no CA: create one with POST /api/v1/certificates/ca');
      res.json(shownCa(row));
    }),
    post: endpoint(
      {
        summary: 'Creates the local CA',
        body: caBody,
        query: replaceQuery,
        answers: { 201: caAnswer, 409: 'There is one: `?replace=true` puts another in its place.' },
      },
      async ({ body, query, req, res }) => {
        const told = (made: AuthorityRow): Told => ({ object: shownCa(made).details?.subject });
        const row = await authority.create(
          body,
          query.replace ?? false,
          audited(req, 'certificate authority', 'created', told),
        );
        say(req, 'certificate authority', 'created', { subject: shownCa(row).details?.subject });
        res.status(201).location(`${PATH}/ca`).json(shownCa(row));
      },
    ),
  });

  routes.resource(`${PATH}/issue`, {
    post: endpoint(
      {
        summary: 'Issues a certificate',
        body: issueBody,
        answers: { 201: issueAnswer, ...NO_CA, 422: 'The request for a certificate cannot be used.' },
      },
      async ({ body, req, res }) => {
        const { name, csr, ...request } = withName(body);
        const { kind } = request;
        const stored = audited(req, 'certificate', 'created', ({ serial }: IssuedRow) => ({
          object: name,
          serial,
          kind,
        }));
        try {
          const issue =
            csr !== undefined
              ? await authority.sign(name, request, csr, stored)
              : await (request.kind === 'server'
                  ? authority.issueKeystore(name, request, stored)
                  : authority.issuePkcs12(name, request, stored));
          say(req, 'certificate', 'created', { name, serial: issue.row.serial, kind: request.kind });
          res.status(201).location(`${PATH}/issued/${issue.row.serial}`).json(shownIssue(issue));
        } catch (error) {
          throw error instanceof UploadError ? uploadAnswer(error) : error;
        }
      },
    ),
  });

  routes.resource(`${PATH}/issued`, {
    get: endpoint(
      { summary: 'What the local CA has issued', query: issuedQuery, answers: { 200: pageOf(issuedAnswer) } },
      async ({ query, res }) =>
        res.json(
          await fetchPage<IssuedRow, unknown>(issuedAsked(knex, query), query, {
            tieBreak: 'serial',
            map: shownIssued,
          }),
        ),
    ),
  });

  routes.resource(`${PATH}/issued/:serial`, {
    get: endpoint(
      {
        summary: 'A certificate of the local CA',
        params: z.strictObject({ serial: revokeBody.shape.serial }),
        answers: { 200: issuedAnswer, 404: 'It issued none of this serial.' },
      },
      async ({ params: { serial }, res }) => {
        const row = (await knex('issued_certificates').where({ serial }).first()) as IssuedRow | undefined;
        if (row === undefined) throw notFound('Certificate', serial, `${PATH}/issued`);
        res.json(shownIssued(row));
      },
    ),
  });

  routes.resource(`${PATH}/keystores/:name/rotate`, {
    post: endpoint(
      {
        summary: 'Issues the identity of a managed keystore anew, with another key',
        params: z.strictObject({ name: storeName() }),
        answers: { 200: issueAnswer, 404: 'There is no such keystore.', 409: 'The local CA does not manage it.' },
      },
      async ({ params: { name }, req, res }) => {
        const stored = audited(req, 'keystore', 'changed', ({ serial }: IssuedRow) => ({ object: name, serial }));
        const issue = await authority.rotate(name, stored);
        say(req, 'keystore', 'changed', { keystore: name, serial: issue.row.serial });
        res.json(shownIssue(issue));
      },
    ),
  });

  routes.resource(`${PATH}/revoked`, {
    post: endpoint(
      {
        summary: 'Revokes a certificate of the local CA',
        body: revokeBody,
        answers: { 200: issuedAnswer, 404: 'It issued none of this serial.', 409: 'It is revoked already.' },
      },
      async ({ body: { serial, reason }, req, res }) => {
        const stored = audited(req, 'certificate', 'changed', (row: IssuedRow) => ({
          object: row.name,
          serial,
          reason,
        }));
        const row = await authority.revoke(serial, reason, stored);
        say(req, 'certificate', 'changed', { name: row.name, serial, reason });
        res.json(shownIssued(row));
      },
    ),
  });

  routes.resource(`${PATH}/crl`, {
    get: endpoint(
      {
        summary: 'The CRL of the local CA',
        query: z.strictObject({ format: z.enum(['der', 'pem']).default('der') }),
        answers: {
          200: { contentType: CRL_TYPE, description: 'DER, or PEM with `?format=pem`.' },
          409: 'There is no CA.',
        },
      },
      async ({ query: { format }, res }) => {
        const crl = await authority.crl();
        res.type(CRL_TYPE).send(format === 'pem' ? Buffer.from(writePem('X509 CRL', crl)) : crl);
      },
    ),
  });
};

/** The body, which must be small. Undefined: it is not. */
const smallBody = async (req: Request): Promise<Buffer | undefined> => {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > MAX_REQUEST) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
};

/** Questions of peers to a CA, open to everybody: its CRL, and online certificate status (RFC 6960). */
export const publicRoutes = (routes: Routes, authority: Pick<LocalAuthority, 'ocsp' | 'crl'>): void => {
  const budget = new LogBudget(OPEN_RATE);
  routes.resource('/crl', {
    get: endpoint(
      {
        ...{ summary: 'The CRL of the local CA, for its peers', access: 'open' },
        answers: {
          200: { contentType: CRL_TYPE, description: 'DER.' },
          409: 'There is no CA.',
          429: 'This address asks too often.',
        },
      },
      async ({ req, res }) => {
        if (budget.take(req.ip ?? '') === undefined) {
          throw new ApiError('TOO_MANY_REQUESTS', 'This address asks too often: ask again in a minute');
        }
        res.type(CRL_TYPE).send(await authority.crl());
      },
    ),
  });
  const answers = { 200: { contentType: OCSP_RESPONSE, description: 'Signed by the CA.' } };
  const answerTo = async (req: Request, read: () => Promise<Buffer> | Buffer): Promise<Buffer> =>
    budget.take(req.ip ?? '') === undefined ? TRY_LATER : authority.ocsp(await read());
  routes.resource('/ocsp', {
    post: endpoint(
      { summary: 'Whether certificates of the local CA are revoked', access: 'open', media: OCSP_REQUEST, answers },
      async ({ req, res }) => {
        const answer = await answerTo(req, async () => (await smallBody(req)) ?? Buffer.alloc(0));
        if (!req.complete) res.set('Connection', 'close');
        res.type(OCSP_RESPONSE).send(answer);
      },
    ),
  });
  routes.resource('/ocsp/:b64', {
    get: endpoint(
      {
        ...{ summary: 'The same, with the request in base64 in the path', access: 'open', answers },
        params: z.strictObject({ b64: z.string().max(2 * MAX_REQUEST) }),
      },
      async ({ params: { b64 }, req, res }) => {
        res.type(OCSP_RESPONSE).send(await answerTo(req, () => Buffer.from(b64, 'base64')));
      },
    ),
  });
};
