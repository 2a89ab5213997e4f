import { provisionalIdentity } from '@pesit-node/certificates';
import { TlsServerTerms } from '@pesit-node/net';
import { tlsProtocolOf } from '@pesit-node/service';
import type { HttpsTools } from '@pesit-node/service';

/** TLS of the REST interface, on the terms of PeSIT over TLS; callers log in, and are asked for no certificate. */
export const REST_HTTPS: HttpsTools = {
  contextOf: (identity, config) =>
    new TlsServerTerms({ identity, clientAuth: 'NONE', ...tlsProtocolOf(config) }).contextFor(),
  makeProvisional: provisionalIdentity,
};
