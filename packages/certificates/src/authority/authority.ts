import { randomBytes } from 'node:crypto';

import { conflict, notFound, unprocessable, validation } from '@pesit-node/service';
import type { AuditWrite, SecretBox } from '@pesit-node/service';
import type { Knex } from 'knex';

import type { Certificates } from '../certificates.js';
import { endOf, startOf } from '../inspect.js';
import { KeystoreStore } from '../keystore-store.js';
import { writePem } from '../read/pem.js';
import { storedCertificates } from '../stored.js';
import { readCsr } from './csr.js';
import { exportKey, makeKeys } from './keys.js';
import type { KeyType } from './keys.js';
import { makeCa, makeCrl, makeLeaf, serialOf } from './make.js';
import { altNames, isWithin, nameDer } from './names.js';
import { answerOcsp, OcspIssuer, readOcspRequest, serialIn, MALFORMED, UNAUTHORIZED } from './ocsp.js';
import { outdateTruststores } from './own-lists.js';
import type { Reason } from './reasons.js';
import { currentAuthority, sealCaKey, signerOf } from './store.js';
import type { AuthorityRow, IssuedRow, IssueRequest } from './store.js';
import { writePkcs12 } from './write-pkcs12.js';

export interface AuthorityOptions {
  readonly knex: Knex;
  readonly secrets: SecretBox;
  readonly certificates: Certificates;
  /** Default: the clock of the machine. */
  readonly now?: (() => number) | undefined;
}

export interface CaRequest {
  readonly commonName: string;
  readonly organization?: string | null | undefined;
  readonly validityDays: number;
  readonly keyType: KeyType;
  readonly permittedDomains: readonly string[];
  readonly crlUrl?: string | null | undefined;
  readonly ocspUrl?: string | null | undefined;
}

/** A certificate that was issued, and the secrets that its owner gets once. */
export interface Issue {
  readonly row: IssuedRow;
  readonly pkcs12?: string;
  readonly password?: string;
}

const DAY_MS = 86_400_000;
/** A clock of a peer may be late by so much. */
const BACKDATED_MS = 300_000;
const CRL_DAYS = 7;
/** Half of its life before its end a CRL is made anew. */
const CRL_RENEW_MS = (CRL_DAYS * DAY_MS) / 2;

const missingCa = (): Error => conflict('There is no CA: create one with POST /api/v1/certificates/ca');

/** The audit entry of what is made or changed, stored with it. */
export type AuditedAs<Row> = (row: Row) => AuditWrite;

/** The local CA: what it issues, and what it takes back. */
export class LocalAuthority {
  readonly #knex: Knex;
  readonly #secrets: SecretBox;
  readonly #certificates: Certificates;
  readonly #now: () => number;

  constructor({ knex, secrets, certificates, now = Date.now }: AuthorityOptions) {
    this.#knex = knex;
    this.#secrets = secrets;
    this.#certificates = certificates;
    this.#now = now;
  }

  current(): Promise<AuthorityRow | undefined> {
    return currentAuthority(this.#knex);
  }

  /** @param replace the CA that is there: what it issued stays valid, and can be revoked. @throws {ApiError} 409 */
  async create(asked: CaRequest, replace: boolean, audited?: AuditedAs<AuthorityRow>): Promise<AuthorityRow> {
    const keys = await makeKeys(asked.keyType);
    const [notBefore, notAfter] = this.#period(asked.validityDays);
    const name = nameDer({ commonName: asked.commonName, organization: asked.organization ?? null });
    const { permittedDomains } = asked;
    const certificate = await makeCa({ name, keys, notBefore, notAfter, permittedDomains });
    const privateKey = writePem('PRIVATE KEY', await exportKey(keys.privateKey));
    return this.#knex.transaction(async (trx) => {
      const before = await currentAuthority(trx, true);
      if (before !== undefined && !replace) {
        throw conflict(
          'There is a CA already: POST /api/v1/certificates/ca?replace=true puts another one in its place',
        );
      }
      if (before !== undefined) await trx('authorities').where({ id: before.id }).update({ replaced_at: trx.fn.now() });
      const [row] = (await trx('authorities')
        .insert({
          ...{ certificate, private_key: sealCaKey(this.#secrets, certificate, privateKey) },
          permitted_domains: JSON.stringify(permittedDomains),
          ...{ crl_url: asked.crlUrl ?? null, ocsp_url: asked.ocspUrl ?? null },
        })
        .returning('*')) as [AuthorityRow];
      await audited?.(row)(trx);
      return row;
    });
  }

  /** A managed keystore of this app. @throws {ApiError} 409 when the name is taken, or there is no CA */
  async issueKeystore(name: string, request: IssueRequest, audited?: AuditedAs<IssuedRow>): Promise<Issue> {
    const row = await this.#knex.transaction(async (trx) => {
      const { row: issued, material } = await this.#issueWithKey(trx, name, request, name);
      const keystore = await new KeystoreStore(trx, this.#secrets).add(name, material);
      if (keystore === undefined) throw conflict(`Keystore ${JSON.stringify(name)} exists already`);
      await trx('keystores').where({ name }).update({ managed: true });
      await audited?.(issued)(trx);
      return issued;
    });
    await this.#certificates.changed();
    return { row };
  }

  /** An identity for a partner, with the password that opens it. */
  async issuePkcs12(name: string, request: IssueRequest, audited?: AuditedAs<IssuedRow>): Promise<Issue> {
    const { row, key, chain } = await this.#knex.transaction(async (trx) => {
      const issue = await this.#issueWithKey(trx, name, request, null);
      await audited?.(issue.row)(trx);
      return issue;
    });
    const password = randomBytes(16).toString('base64url');
    return { row, password, pkcs12: (await writePkcs12(key, chain, password)).toString('base64') };
  }

  /** @param csr PEM @throws {UploadError} */
  async sign(name: string, request: IssueRequest, csr: string, audited?: AuditedAs<IssuedRow>): Promise<Issue> {
    const asked = await readCsr(csr);
    const row = await this.#knex.transaction(async (trx) => {
      const issued = await this.#issue(trx, name, request, null, asked);
      await audited?.(issued)(trx);
      return issued;
    });
    return { row };
  }

  /**
   * Issues the identity of a managed keystore anew, with another key.
   * @param inTransaction where it is written; default: one of its own
   * @throws {ApiError} 404, or 409 when the CA does not manage it
   */
  async rotate(
    name: string,
    audited?: AuditedAs<IssuedRow>,
    inTransaction: RunInTransaction = (work) => this.#knex.transaction(work),
  ): Promise<Issue> {
    const row = await inTransaction(async (trx) => {
      const store = new KeystoreStore(trx, this.#secrets);
      const keystore = await store.get(name);
      if (keystore === undefined) throw notFound('Keystore', name, '/api/v1/certificates/keystores');
      const last = await trx('issued_certificates')
        .where({ keystore: name })
        .orderBy('issued_at', 'desc')
        .first<IssuedRow | undefined>();
      if (!keystore.managed || last === undefined) {
        throw conflict(
          `Keystore ${JSON.stringify(name)} is not managed by the local CA: give its next certificate with PUT /api/v1/certificates/keystores/${name}`,
        );
      }
      const { row: issued, material } = await this.#issueWithKey(trx, name, last.request, name);
      await store.replace(name, material, true);
      await audited?.(issued)(trx);
      return issued;
    });
    await this.#certificates.changed();
    return { row };
  }

  /**
   * Managed keystores that end within so many days: never in the first third of their life, so that short ones are not renewed all the
   * time, and not those that would end no later if they were issued anew.
   */
  async due(days: number): Promise<readonly string[]> {
    const rows = await this.#knex('keystores')
      .where({ managed: true })
      .orderBy('name')
      .select<{ readonly name: string; readonly certificate: string }[]>('name', 'certificate');
    const [ca] = storedCertificates((await this.current())?.certificate ?? '');
    const latest = ca === undefined ? Infinity : endOf(ca);
    const isDue = (pem: string): boolean => {
      const [leaf] = storedCertificates(pem);
      if (leaf === undefined || endOf(leaf) >= latest) return false;
      const before = Math.min(days * DAY_MS, ((endOf(leaf) - startOf(leaf)) * 2) / 3);
      return endOf(leaf) - before <= this.#now();
    };
    return rows.filter(({ certificate }) => isDue(certificate)).map(({ name }) => name);
  }

  /** @throws {ApiError} 404, or 409 when it is revoked for good already */
  async revoke(serial: string, reason: Reason, audited?: AuditedAs<IssuedRow>): Promise<IssuedRow> {
    const revoked = await this.#knex.transaction(async (trx) => {
      const before = await trx('issued_certificates').where({ serial }).forUpdate().first<IssuedRow | undefined>();
      if (before === undefined) throw notFound('Certificate', serial, '/api/v1/certificates/issued');
      const isHeld = before.reason === 'certificateHold';
      if (reason === 'removeFromCRL' ? !isHeld : before.revoked_at !== null && !isHeld) {
        throw conflict(
          reason === 'removeFromCRL'
            ? `Certificate ${serial} is not on hold: nothing else can be taken back (RFC 5280 §5.3.1)`
            : `Certificate ${serial} is revoked already (${before.reason ?? 'unspecified'})`,
        );
      }
      const change =
        reason === 'removeFromCRL' ? { revoked_at: null, reason: null } : { revoked_at: new Date(this.#now()), reason };
      const [row] = (await trx('issued_certificates').where({ serial }).update(change).returning('*')) as [IssuedRow];
      // The next one who asks gets a CRL with it.
      await trx('authorities').where({ id: row.authority }).update({ crl: null });
      await outdateTruststores(trx, row.authority);
      await audited?.(row)(trx);
      return row;
    });
    await this.#certificates.changed();
    return revoked;
  }

  /** The newest CRL, DER; made anew when something was revoked, and before it gets old. @throws {ApiError} 409 without a CA */
  async crl(): Promise<Buffer> {
    return this.#knex.transaction(async (trx) => {
      const row = await currentAuthority(trx, true);
      if (row === undefined) throw missingCa();
      const now = this.#now();
      const { crl, crl_next_update: until } = row;
      if (crl !== null && until !== null && until.getTime() - now > CRL_RENEW_MS) return crl;
      const revoked = await trx('issued_certificates')
        .where({ authority: row.id })
        .whereNotNull('revoked_at')
        // RFC 5280 §3.3: on one more list after its end.
        .where('not_after', '>', new Date(now - 2 * CRL_DAYS * DAY_MS))
        .orderBy('revoked_at')
        .select<IssuedRow[]>('serial', 'revoked_at', 'reason');
      const [thisUpdate, nextUpdate] = [new Date(now), new Date(now + CRL_DAYS * DAY_MS)];
      const number = row.crl_number + 1;
      const made = await makeCrl(await signerOf(this.#secrets, row), {
        ...{ number, thisUpdate, nextUpdate },
        entries: revoked.map(({ serial, revoked_at: at, reason }) => ({
          ...{ serial, at: at ?? thisUpdate, reason: reason ?? 'unspecified' },
        })),
      });
      await trx('authorities')
        .where({ id: row.id })
        .update({ crl: made, crl_number: number, crl_next_update: nextUpdate });
      return made;
    });
  }

  /** Answers an OCSP request (RFC 6960) of any CA that was here. */
  async ocsp(bytes: Buffer): Promise<Buffer> {
    const request = readOcspRequest(bytes);
    if (request === undefined) return MALFORMED;
    const ids = request.tbsRequest.requestList.map(({ reqCert }) => reqCert);
    const rows = (await this.#knex('authorities').orderBy('id', 'desc')) as readonly AuthorityRow[];
    for (const row of rows) {
      const issuer = new OcspIssuer(row.certificate);
      const own = ids.filter((id) => issuer.isNamedBy(id));
      if (own.length === 0) continue;
      const found = await this.#knex('issued_certificates')
        .where({ authority: row.id })
        .whereIn('serial', own.map(serialIn))
        .select<IssuedRow[]>('serial', 'revoked_at', 'reason');
      const known = new Map(found.map((one) => [one.serial, one]));
      const status = (id: (typeof ids)[number]) => (own.includes(id) ? known.get(serialIn(id)) : undefined);
      return answerOcsp(request, await signerOf(this.#secrets, row), issuer, status, this.#now());
    }
    return UNAUTHORIZED;
  }

  async #issueWithKey(trx: Knex, name: string, request: IssueRequest, keystore: string | null) {
    const keys = await makeKeys(request.keyType);
    const key = await exportKey(keys.privateKey);
    const isRsa = keys.type === 'RSA';
    const row = await this.#issue(trx, name, request, keystore, { publicKey: keys.publicKey, isRsa });
    const authority = await trx('authorities').where({ id: row.authority }).first<AuthorityRow>();
    const certificate = row.certificate + authority.certificate;
    const chain = storedCertificates(certificate).map(({ raw }) => raw);
    return { row, key, chain, material: { certificate, privateKey: writePem('PRIVATE KEY', key) } };
  }

  async #issue(
    trx: Knex,
    name: string,
    request: IssueRequest,
    keystore: string | null,
    { publicKey, isRsa }: Pick<Parameters<typeof makeLeaf>[1], 'publicKey' | 'isRsa'>,
  ): Promise<IssuedRow> {
    const authority = await currentAuthority(trx);
    if (authority === undefined) throw missingCa();
    const sans = altNames(request.sans);
    refuseOutside(authority, request.commonName, sans);
    const [notBefore, wanted] = this.#period(request.ttlDays);
    const [ca] = storedCertificates(authority.certificate);
    // A certificate that outlives its CA is of no use to anybody.
    const notAfter = new Date(Math.min(wanted.getTime(), ca === undefined ? Infinity : endOf(ca)));
    if (notAfter.getTime() <= this.#now())
      throw unprocessable('The CA has expired: replace it with POST /api/v1/certificates/ca?replace=true');
    const { kind } = request;
    const certificate = await makeLeaf(await signerOf(this.#secrets, authority), {
      ...{ name: nameDer({ commonName: request.commonName }), publicKey, isRsa, sans, kind, notBefore, notAfter },
    });
    const [row] = (await trx('issued_certificates')
      .insert({
        ...{ serial: serialOf(certificate), authority: authority.id, name, kind, certificate, keystore },
        ...{ request: JSON.stringify(request), not_before: notBefore, not_after: notAfter },
      })
      .returning('*')) as [IssuedRow];
    return row;
  }

  /** Whole seconds, as certificates have them. */
  #period(days: number): readonly [Date, Date] {
    const now = Math.floor(this.#now() / 1000) * 1000;
    return [new Date(now - BACKDATED_MS), new Date(now + days * DAY_MS)];
  }
}

export type RunInTransaction = <T>(work: (trx: Knex.Transaction) => Promise<T>) => Promise<T>;

/** A common name that peers take for a host where there is no other name of one. */
const HOST_NAME = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)+$/i;

const refuseOutside = (
  { permitted_domains: domains }: AuthorityRow,
  commonName: string,
  sans: ReturnType<typeof altNames>,
): void => {
  if (domains.length === 0) return;
  const hosts = sans.filter(({ type }) => type === 'dns').map(({ value }) => value);
  if (hosts.length === 0 && HOST_NAME.test(commonName)) hosts.push(commonName);
  const outside = hosts.filter((name) => !isWithin(name, domains));
  if (outside.length === 0) return;
  throw validation([
    {
      field: 'sans',
      message: `the CA may issue for ${domains.join(', ')} alone: ${outside.join(', ')} is outside`,
    },
  ]);
};
