import { useLocation } from 'preact-iso';

import { listeners } from '../api/configuration.ts';
import { may } from '../api/session.ts';
import { Creation } from '../parts/creation.tsx';
import { LISTENER } from '../parts/layouts.ts';
import { ListenerPill, portsOf } from '../parts/listener-state.tsx';
import { Listing } from '../parts/listing.tsx';
import { words as configuration } from '../texts/configuration.ts';
import { number } from '../texts/format.ts';
import { texts } from '../texts/index.ts';

const PATH = '/listeners';

/** All listeners, and the form of a new one (`?new`). */
export const ListenersPage = () => {
  const { query } = useLocation();
  const { listeners: words, common } = configuration.value;
  if ('new' in query && may('admin')) {
    return (
      <Creation
        {...{ path: PATH, title: words.create, back: words.back, resource: 'listener', layout: LISTENER }}
        create={async (body) => (await listeners.create(body)).serverId}
      />
    );
  }
  return (
    <Listing
      {...{ path: PATH, title: texts.value.pages.listeners, resource: listeners, none: words.none, hint: words.hint }}
      every={10_000}
      idOf={({ serverId }) => serverId}
      nameOf={({ serverId }) => serverId}
      filter={{
        label: common.state,
        values: [
          ['true', words.running],
          ['false', words.stopped],
        ],
      }}
      ways={[{ path: `${PATH}?new=1`, word: words.create }]}
      columns={[
        {
          title: common.state,
          cell: ({ status, statusReason }) => (
            <>
              <ListenerPill status={status} />
              {statusReason !== null && <div class="quiet">{statusReason}</div>}
            </>
          ),
        },
        { title: words.port, cell: portsOf },
        {
          title: words.sessions,
          cell: ({ activeConnections, maxConnections }) => `${number(activeConnections)} / ${number(maxConnections)}`,
        },
        { title: words.transfers, isExtra: true, cell: ({ totalTransfers }) => number(totalTransfers) },
      ]}
    />
  );
};
