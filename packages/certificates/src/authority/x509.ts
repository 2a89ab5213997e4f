/** The library, set up: it asks for the polyfill before it is loaded, and for Node's own cryptography. */
import 'reflect-metadata';

import { webcrypto } from 'node:crypto';

import * as x509 from '@peculiar/x509';

x509.cryptoProvider.set(webcrypto as never);

export { x509 };
