import { useLocation } from 'preact-iso';

import { remoteServers } from '../api/configuration.ts';
import { may } from '../api/session.ts';
import { Creation } from '../parts/creation.tsx';
import { REMOTE_SERVER } from '../parts/layouts.ts';
import { Listing } from '../parts/listing.tsx';
import { TracePill } from '../parts/one.tsx';
import { ServerPill } from '../parts/server-state.tsx';
import { words as configuration } from '../texts/configuration.ts';
import { fromNow } from '../texts/format.ts';
import { texts } from '../texts/index.ts';
import { SetUpServer } from './set-up-server.tsx';

const PATH = '/servers';
const STATES = ['CONNECTED', 'UNREACHABLE', 'REFUSED', 'UNKNOWN'] as const;

/** All remote servers, and the form of a new one (`?new`). */
export const ServersPage = () => {
  const { query } = useLocation();
  const { servers: words, setUp, common } = configuration.value;
  const { pages, serverStatus } = texts.value;
  if ('setup' in query && may('admin')) return <SetUpServer />;
  if ('new' in query && may('admin')) {
    return (
      <Creation
        {...{ path: PATH, title: words.create, back: words.back, resource: 'remoteServer', layout: REMOTE_SERVER }}
        create={async (body) => String((await remoteServers.create(body)).id)}
      />
    );
  }
  return (
    <Listing
      {...{ path: PATH, title: pages.servers, resource: remoteServers, none: words.none, hint: words.hint }}
      every={10_000}
      idOf={({ id }) => String(id)}
      nameOf={({ name }) => name}
      filter={{ label: common.state, values: STATES.map((one) => [one, serverStatus[one]] as const) }}
      ways={[
        { path: `${PATH}?setup=1`, word: setUp.serverTitle },
        { path: `${PATH}?new=1`, word: words.create },
      ]}
      columns={[
        {
          title: common.state,
          cell: (row) => (
            <span class="row">
              <ServerPill of={row} />
              <TracePill until={row.traceUntil} />
            </span>
          ),
        },
        {
          title: words.host,
          cell: ({ host, port, tlsEnabled, tlsPort }) => (
            <span class="breaks">
              {host}
              <wbr />
              {tlsEnabled ? `:${tlsPort ?? 5001} TLS` : `:${port}`}
            </span>
          ),
        },
        { title: 'PI 4', isExtra: true, cell: ({ serverId }) => serverId },
        { title: 'PI 3', isExtra: true, cell: ({ clientId }) => clientId },
        {
          title: words.contact,
          isExtra: true,
          cell: ({ lastContact }) =>
            lastContact === null ? <span class="quiet">{common.never}</span> : fromNow(lastContact),
        },
      ]}
    />
  );
};
