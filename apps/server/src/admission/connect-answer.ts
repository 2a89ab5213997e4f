import type { ConnectAnswer } from '@pesit-node/protocol';
import type { Config } from '@pesit-node/service';

import type { ListenerRow } from '../listeners/fields.js';
import type { PartnerRow } from '../partners/fields.js';

type Defaults = Pick<
  Config<'server'>,
  'transfer.sync-points-enabled' | 'transfer.sync-point-interval' | 'transfer.sync-window'
>;

/** The offer to a partner that was let in: sync points as the listener says, articles as this partner writes and takes them. */
export const connectAnswer = (
  { sync_interval, sync_window }: Pick<ListenerRow, 'sync_interval' | 'sync_window'>,
  { seen: { singleArticle }, multi_article, concatenation }: PartnerRow,
  config: Defaults,
): ConnectAnswer => {
  const intervalKb = sync_interval ?? config['transfer.sync-point-interval'];
  const window = sync_window ?? config['transfer.sync-window'];
  const known = {
    ...(singleArticle === undefined ? {} : { singleArticle }),
    multiArticle: multi_article ?? true,
    concatenation: concatenation ?? true,
  };
  return config['transfer.sync-points-enabled'] && intervalKb > 0
    ? { syncPoints: { intervalKb, window }, resynchronisation: true, defaultIntervalKb: intervalKb, ...known }
    : known;
};
