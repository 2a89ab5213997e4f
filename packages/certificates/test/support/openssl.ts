/** Certificates as the `openssl` command makes them: nothing of the package under test had a hand in them. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll } from '@jest/globals';

export interface Issued {
  /** Paths. */
  readonly key: string;
  readonly certificate: string;
  /** PEM. */
  readonly keyPem: string;
  readonly pem: string;
}

export interface IssueOptions {
  readonly name: string;
  /** `-newkey` and what follows. Default: P-256. */
  readonly newKey?: readonly string[];
  readonly subject?: string;
  /** Lines of extensions, each `name = value`. */
  readonly extensions?: readonly string[];
  /** From now on; below 0: it has expired. */
  readonly days?: number;
  readonly issuer?: Issued;
}

export interface CrlTerms {
  readonly number?: number;
  /** From now on. Default 30. */
  readonly days?: number;
  readonly reason?: string;
  /** Lines of its extensions. */
  readonly extensions?: readonly string[];
}

/** The bytes of one block of PEM. */
export const derOf = (pem: string): Buffer => Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64');

export const P256 = ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];

/** A folder of its own for each test file, removed behind it. */
export class OpenSsl {
  readonly directory = mkdtempSync(join(tmpdir(), 'pesit-openssl-'));

  constructor() {
    afterAll(() => rmSync(this.directory, { recursive: true, force: true }));
  }

  /** @returns standard output */
  run(...args: readonly string[]): string {
    return execFileSync('openssl', [...args], { cwd: this.directory, stdio: ['ignore', 'pipe', 'pipe'] }).toString();
  }

  /** @returns standard output and errors */
  tell(...args: readonly string[]): string {
    const { stdout, stderr } = spawnSync('openssl', [...args], { cwd: this.directory });
    return `${stdout.toString()}${stderr.toString()}`;
  }

  bytes(name: string): Buffer {
    return readFileSync(join(this.directory, name));
  }

  write(name: string, content: string | Uint8Array): string {
    writeFileSync(join(this.directory, name), content);
    return join(this.directory, name);
  }

  issue({ name, newKey = P256, subject, extensions = [], days = 30, issuer }: IssueOptions): Issued {
    const [key, certificate, request] = [`${name}.key`, `${name}.pem`, `${name}.csr`];
    const about = ['-subj', subject ?? `/O=Test/CN=${name}`];
    this.run('req', '-new', '-newkey', ...newKey, '-nodes', '-keyout', key, '-out', request, ...about);
    const signed = issuer === undefined ? ['-signkey', key] : ['-CA', issuer.certificate, '-CAkey', issuer.key];
    const extfile = this.write(`${name}.ext`, `${extensions.join('\n')}\n`);
    this.run(
      ...['x509', '-req', '-in', request, ...signed, '-out', certificate, '-days', String(days)],
      ...['-set_serial', `0x${Buffer.from(name).toString('hex').slice(0, 32)}`, '-extfile', extfile],
    );
    return {
      key: join(this.directory, key),
      certificate: join(this.directory, certificate),
      keyPem: this.bytes(key).toString(),
      pem: this.bytes(certificate).toString(),
    };
  }

  ca(name: string, issuer?: Issued): Issued {
    const extensions = ['basicConstraints = critical,CA:TRUE', 'keyUsage = critical,keyCertSign,cRLSign'];
    return this.issue({ name, extensions, ...(issuer === undefined ? {} : { issuer }) });
  }

  /** A CRL in PEM. @param revoked serials */
  crl(
    ca: Pick<Issued, 'key' | 'certificate'>,
    revoked: readonly string[] = [],
    { number = 1, days = 30, reason, extensions }: CrlTerms = {},
  ): string {
    const why = reason === undefined ? '' : `,${reason}`;
    const lines = revoked.map((one) => `R\t401231235959Z\t260102030405Z${why}\t${one}\tunknown\t/CN=x\n`);
    this.write('index.txt', lines.join(''));
    const hex = number.toString(16);
    this.write('crlnumber', `${hex.length % 2 === 0 ? hex : `0${hex}`}\n`);
    const section = ['[e]', ...(extensions ?? ['authorityKeyIdentifier=keyid']), '[idp]', 'onlyuser=TRUE'];
    const settings = ['[ca]', 'default_ca=d', '[d]', 'database=index.txt', 'crlnumber=crlnumber', 'default_md=sha256'];
    this.write('ca.cnf', `${[...settings, 'crl_extensions=e', ...section].join('\n')}\n`);
    this.run(
      ...['ca', '-config', 'ca.cnf', '-gencrl', '-keyfile', ca.key, '-cert', ca.certificate, '-out', 'made.crl'],
      ...['-crldays', String(days)],
    );
    return this.bytes('made.crl')
      .toString()
      .replace(/^[^-]*/, '');
  }

  /** @param more of `openssl pkcs12 -export` */
  pkcs12(
    { key, certificate }: Issued,
    chain: readonly Issued[],
    password: string,
    more: readonly string[] = [],
  ): Buffer {
    const extra =
      chain.length === 0 ? [] : ['-certfile', this.write('chain.pem', chain.map(({ pem }) => pem).join(''))];
    const out = ['-out', 'made.p12', '-passout', `pass:${password}`];
    this.run('pkcs12', '-export', '-inkey', key, '-in', certificate, ...extra, ...out, ...more);
    return this.bytes('made.p12');
  }
}
