import type { MigrationSet } from '@pesit-node/service';

import { partners } from './0001-partners.js';
import { virtualFiles } from './0002-virtual-files.js';
import { listeners } from './0003-listeners.js';
import { transfers } from './0004-transfers.js';
import { sentFiles } from './0005-sent-files.js';
import { restart } from './0006-restart.js';
import { facilities } from './0007-facilities.js';
import { overwrite } from './0008-overwrite.js';
import { newestContext } from './0009-newest-context.js';
import { sentPoints } from './0010-sent-points.js';
import { traces } from './0011-traces.js';
import { dataLayout } from './0012-data-layout.js';
import { transferNumbers } from './0013-transfer-numbers.js';
import { grants } from './0014-grants.js';
import { diagnosticComplement } from './0015-diagnostic-complement.js';
import { refusals } from './0016-refusals.js';
import { maxFileSize } from './0017-max-file-size.js';
import { credentials } from './0018-credentials.js';
import { quotas } from './0019-quotas.js';
import { boundedTexts } from './0020-bounded-texts.js';
import { wantedListeners } from './0021-wanted-listeners.js';
import { stores } from './0022-stores.js';
import { sessionPlaces } from './0023-session-places.js';
import { expiry } from './0023-expiry.js';
import { history } from './0024-history.js';
import { authority } from './0025-authority.js';
import { tls } from './0026-tls.js';
import { proxyProtocol } from './0027-proxy-protocol.js';
import { revocation } from './0028-revocation.js';
import { fetchedCrls } from './0029-fetched-crls.js';
import { audit } from './0030-audit.js';
import { allowedAddresses } from './0031-allowed-addresses.js';
import { attempts } from './0032-attempts.js';
import { rates } from './0033-rates.js';
import { passwordChange } from './0034-password-change.js';
import { ticketKeys } from './0035-ticket-keys.js';
import { historySums } from './0036-history-sums.js';
import { hooks } from './0037-hooks.js';
import { declared } from './0038-declared.js';
import { ended } from './0039-ended.js';

/** Oldest first; a published step is never edited. */
export const MIGRATIONS: MigrationSet = {
  schema: 'pesit_server',
  migrations: [
    partners,
    virtualFiles,
    listeners,
    transfers,
    sentFiles,
    restart,
    facilities,
    overwrite,
    newestContext,
    sentPoints,
    traces,
    dataLayout,
    transferNumbers,
    grants,
    diagnosticComplement,
    refusals,
    maxFileSize,
    credentials,
    quotas,
    boundedTexts,
    wantedListeners,
    stores,
    sessionPlaces,
    expiry,
    history,
    authority,
    tls,
    proxyProtocol,
    revocation,
    fetchedCrls,
    audit,
    allowedAddresses,
    attempts,
    rates,
    passwordChange,
    ticketKeys,
    historySums,
    hooks,
    declared,
    ended,
  ],
};
