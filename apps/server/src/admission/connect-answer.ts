import { pacedSyncPoints } from '@pesit-node/net';
import type { ConnectAnswer } from '@pesit-node/protocol';
import type { Config } from '@pesit-node/service';

import type { ListenerRow } from '../listeners/fields.js';
import type { PartnerRow } from '../partners/fields.js';

type Defaults = Pick<
  Config<'server'>,
  'transfer.sync-points-enabled' | 'transfer.sync-point-interval' | 'transfer.sync-window'
>;

type Asked = Pick<ListenerRow, 'sync_interval' | 'sync_window' | 'max_bytes_per_second'>;

/** The offer to a partner that was let in: sync points as the listener says, articles as this partner writes and takes them. */
export const connectAnswer = (
  { sync_interval, sync_window, max_bytes_per_second: onListener }: Asked,
  { seen: { singleArticle }, multi_article, concatenation, max_bytes_per_second: ofPartner }: PartnerRow,
  config: Defaults,
): ConnectAnswer => {
  const asked = {
    intervalKb: sync_interval ?? config['transfer.sync-point-interval'],
    window: sync_window ?? config['transfer.sync-window'],
  };
  const syncPoints = pacedSyncPoints(asked, [onListener, ofPartner]);
  const known = {
    ...(singleArticle === undefined ? {} : { singleArticle }),
    multiArticle: multi_article ?? true,
    concatenation: concatenation ?? true,
  };
  return config['transfer.sync-points-enabled'] && syncPoints.intervalKb > 0
    ? { syncPoints, resynchronisation: true, defaultIntervalKb: syncPoints.intervalKb, ...known }
    : known;
};
