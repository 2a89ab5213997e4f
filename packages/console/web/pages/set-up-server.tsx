import { useLocation } from 'preact-iso';
import { useState } from 'preact/hooks';

import { remoteServers } from '../api/configuration.ts';
import type { RemoteServer } from '../api/configuration.ts';
import { ConnectionTestCard } from '../parts/connection-test.tsx';
import { ResourceForm } from '../parts/form.tsx';
import type { Layout } from '../parts/form.tsx';
import { REMOTE_SERVER } from '../parts/layouts.ts';
import { Card, Page } from '../parts/page.tsx';
import { words as configuration } from '../texts/configuration.ts';

/** What a partner's parameter sheet says, in its order; the rest has its defaults. */
const SHEET: Layout<'remoteServer'> = {
  first: ['host', 'port', 'tlsEnabled', 'tlsPort', 'serverId', 'clientId', 'password', 'name'],
  groups: REMOTE_SERVER.groups.map(([group, names]) => [group, names.filter((name) => name !== 'tlsPort')] as const),
};

/** A remote server from what its owner has sent, tested as soon as it is made. The address may bring all but the password. */
export const SetUpServer = () => {
  const { query } = useLocation();
  const [made, setMade] = useState<RemoteServer>();
  const { setUp, servers: words } = configuration.value;
  const given = ['name', 'host', 'serverId', 'clientId'].flatMap((name) => {
    const value = query[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  const { file, pin, port } = query;
  const ports = port === undefined ? {} : query['tls'] === '1' ? { tlsPort: port, tlsEnabled: 'true' } : { port };
  return (
    <Page title={setUp.serverTitle}>
      <p>
        <a href="/servers">{words.back}</a>
      </p>
      {made === undefined ? (
        <Card title={setUp.serverWhat}>
          <p class="quiet">{setUp.serverHint}</p>
          <ResourceForm
            {...{ resource: 'remoteServer', layout: SHEET, submit: setUp.saveAndTest }}
            preset={{
              ...Object.fromEntries(given),
              ...ports,
              ...(pin === undefined ? {} : { certificateFingerprint: pin }),
            }}
            save={async (body) => setMade(await remoteServers.create(body))}
          />
        </Card>
      ) : (
        <>
          <p class="note good" role="status">
            {setUp.serverMade(made.name)}
          </p>
          <ConnectionTestCard server={made} tested={() => undefined} isAtOnce />
          <p class="row">
            <a
              class="button main"
              href={`/send?${new URLSearchParams({ server: made.name, ...(file === undefined ? {} : { file }) }).toString()}`}
            >
              {setUp.sendFirst}
            </a>
            <a href={`/servers/${made.id}`}>{setUp.toPartner(made.name)}</a>
          </p>
        </>
      )}
    </Page>
  );
};
