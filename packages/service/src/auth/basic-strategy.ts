import type { Request } from 'express';
import { BasicStrategy } from 'passport-http';
import { isError } from '@pesit-node/ground';
import type { Login } from './roles.js';

/**
 * Whose credentials they are; undefined when they are wrong. Must take the same time for a wrong user as for a wrong password.
 * @param address of the caller
 */
export type VerifyCredentials = (
  username: string,
  password: string,
  address: string,
) => Login | undefined | Promise<Login | undefined>;

/** Keeps nothing between two texts. */
const UTF_8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const BASIC = /^Basic +([A-Za-z0-9+/]+={0,2})$/i;

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** The credentials of an `Authorization` header by RFC 7617: split at the first ':', UTF-8. `undefined` when it has none. */
export const parseBasic = (header: string | undefined): Credentials | undefined => {
  const token = BASIC.exec(header ?? '')?.[1];
  if (token === undefined) return undefined;
  let text: string;
  try {
    text = UTF_8.decode(Buffer.from(token, 'base64'));
  } catch {
    return undefined;
  }
  const colon = text.indexOf(':');
  return colon < 0 ? undefined : { username: text.slice(0, colon), password: text.slice(colon + 1) };
};

/**
 * passport-http's strategy with its parsing replaced: 0.3.0 cuts a password at its second ':' and accepts schemes that merely
 * contain "basic".
 */
export class Rfc7617BasicStrategy extends BasicStrategy {
  /** Set by passport on the request's own copy; the type package leaves them out. */
  declare fail: (challenge: string) => void;
  declare success: (user: Express.User) => void;
  declare error: (error: Error) => void;
  /** Not a `#` field: passport works on an object made with this one as its prototype. */
  private readonly verifyCredentials: VerifyCredentials;

  constructor(verify: VerifyCredentials) {
    super(() => undefined);
    this.verifyCredentials = verify;
  }

  static readonly CHALLENGE = 'Basic realm="pesit", charset="UTF-8"';

  override authenticate(req: Request): void {
    const credentials = parseBasic(req.headers.authorization);
    if (credentials === undefined) {
      this.fail(Rfc7617BasicStrategy.CHALLENGE);
      return;
    }
    const { username, password } = credentials;
    Promise.resolve()
      .then(() => this.verifyCredentials(username, password, req.ip ?? 'unknown'))
      .then(
        (login) => (login === undefined ? this.fail(Rfc7617BasicStrategy.CHALLENGE) : this.success(login)),
        (error: unknown) => this.error(isError(error) ? error : new Error(String(error))),
      );
  }
}
