import type { MigrationSet } from '@pesit-node/service';

import { remoteServers } from './0001-remote-servers.js';
import { transfers } from './0002-transfers.js';
import { restart } from './0003-restart.js';
import { facilities } from './0004-facilities.js';
import { requests } from './0005-requests.js';
import { multiArticle } from './0006-multi-article.js';
import { traces } from './0007-traces.js';
import { seen } from './0008-seen.js';
import { creationDate } from './0009-creation-date.js';
import { concatenation } from './0010-concatenation.js';
import { take } from './0011-take.js';
import { answers } from './0012-answers.js';
import { askedName } from './0013-asked-name.js';
import { contents } from './0014-contents.js';
import { sessionPlaces } from './0015-session-places.js';
import { boundedTexts } from './0016-bounded-texts.js';
import { stores } from './0017-stores.js';
import { expiry } from './0018-expiry.js';
import { history } from './0019-history.js';
import { tls } from './0020-tls.js';
import { revocation } from './0021-revocation.js';
import { fetchedCrls } from './0022-fetched-crls.js';
import { audit } from './0023-audit.js';
import { createdBy } from './0024-created-by.js';
import { queuePolicies } from './0025-queue-policies.js';
import { attempts } from './0026-attempts.js';
import { rate } from './0027-rate.js';
import { circuits } from './0028-circuits.js';
import { orderedCounted } from './0029-ordered-counted.js';
import { historySums } from './0030-history-sums.js';
import { announced } from './0031-announced.js';
import { hooks } from './0032-hooks.js';
import { declared } from './0033-declared.js';
import { ended } from './0034-ended.js';

/** Schema of the client app. Steps are added at the end; a published one is never edited. */
export const CLIENT_MIGRATIONS: MigrationSet = {
  schema: 'pesit_client',
  migrations: [
    remoteServers,
    transfers,
    restart,
    facilities,
    requests,
    multiArticle,
    traces,
    seen,
    creationDate,
    concatenation,
    take,
    answers,
    askedName,
    contents,
    sessionPlaces,
    boundedTexts,
    stores,
    expiry,
    history,
    tls,
    revocation,
    fetchedCrls,
    audit,
    createdBy,
    queuePolicies,
    attempts,
    rate,
    circuits,
    orderedCounted,
    historySums,
    announced,
    hooks,
    declared,
    ended,
  ],
};
