/** An OCSP responder whose answers are those of the `openssl ocsp` command, and what becomes of peers by what it says. */
import { X509Certificate } from 'node:crypto';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { afterAll } from '@jest/globals';

import type { Issued, OpenSsl } from './openssl.js';

export type Answers = (question: Buffer, res: ServerResponse) => void;

export const VALID = 'V\t401231235959Z\t';
export const REVOKED = 'R\t401231235959Z\t260102030405Z,keyCompromise';

/** Answers at `/<path>` as `says` has it, until the end of the test file. */
export class Responder {
  readonly #openssl: OpenSsl;
  readonly #ca: Issued;
  readonly #server = createServer((req, res) => {
    this.questions++;
    const pieces: Buffer[] = [];
    req.on('data', (piece: Buffer) => pieces.push(piece));
    req.on('end', () => this.says.get(req.url?.slice(1) ?? '')?.(Buffer.concat(pieces), res));
  });
  questions = 0;
  /** By path; one without an answer is left waiting. */
  readonly says = new Map<string, Answers>();

  /** @param ca of whose certificates it speaks */
  constructor(openssl: OpenSsl, ca: Issued) {
    this.#openssl = openssl;
    this.#ca = ca;
    afterAll(() => {
      this.#server.closeAllConnections();
      this.#server.close();
    });
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  /** The line of a certificate that names it. */
  at(path: string): string {
    return `authorityInfoAccess = OCSP;URI:http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${path}`;
  }

  /** The answer of OpenSSL to each question. @param status `VALID` or `REVOKED`; undefined: it does not know the certificate */
  saying(of: Issued, status: string | undefined, signer?: Issued, more?: readonly string[]): Answers {
    return (question, res) => res.end(this.#answer(question, of, status, signer, more));
  }

  /** The same, made ahead and without a nonce: who waits for it does not wait for OpenSSL. */
  ready(of: Issued, status: string | undefined, signer?: Issued): Answers {
    const about = ['-issuer', this.#ca.certificate, '-cert', of.certificate];
    this.#openssl.run('ocsp', ...about, '-no_nonce', '-reqout', 'ahead.der');
    const answer = this.#answer(this.#openssl.bytes('ahead.der'), of, status, signer);
    return (_, res) => res.end(answer);
  }

  #answer(question: Buffer, of: Issued, status = '', signer = this.#ca, more = ['-nmin', '30'] as readonly string[]) {
    const asked = this.#openssl.write('question.der', question);
    const serial = new X509Certificate(of.pem).serialNumber;
    const index = this.#openssl.write('ocsp.txt', status === '' ? '' : `${status}\t${serial}\tunknown\t/CN=x\n`);
    const by = ['-rsigner', signer.certificate, '-rkey', signer.key];
    const args = ['ocsp', '-index', index, '-CA', this.#ca.certificate, '-reqin', asked, ...by, ...more];
    this.#openssl.run(...args, '-respout', 'answer.der');
    return this.#openssl.bytes('answer.der');
  }
}

const ASKED = { soft: 'in', hard: 'TLS_REVOCATION_UNKNOWN' } as const;
const SAID = { soft: 'TLS_CERTIFICATE_REVOKED', hard: 'TLS_CERTIFICATE_REVOKED' } as const;

/** What a responder does with the certificate of a peer of which no CRL tells, and what becomes of the peer by `revocation`. */
export const OCSP_CASES: readonly (readonly [
  what: string,
  ends: Readonly<Record<'soft' | 'hard', string>>,
  words: RegExp,
  /** Undefined: it says nothing. */
  says: ((responder: Responder, of: Issued, stranger: Issued) => Answers | undefined) | 'is not there',
])[] = [
  ['good', { soft: 'in', hard: 'in' }, /^$/, (responder, of) => responder.ready(of, VALID)],
  ['revoked', SAID, /was revoked by its CA .*, keyCompromise/, (responder, of) => responder.ready(of, REVOKED)],
  ['unknown', ASKED, /it does not know the certificate/, (responder, of) => responder.ready(of, undefined)],
  ['unreachable', ASKED, /cannot say it: ECONNREFUSED/, 'is not there'],
  ['slow', ASKED, /it did not come whole within 3000 ms/, () => undefined],
  ['lying', ASKED, /is signed neither by the CA nor/, (responder, of, other) => responder.ready(of, VALID, other)],
  ['slander', ASKED, /is signed neither by the CA nor/, (responder, of, other) => responder.ready(of, REVOKED, other)],
  ['failing', ASKED, /the server answers 500/, () => (_, res) => void res.writeHead(500).end()],
];
