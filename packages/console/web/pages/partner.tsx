import { useRoute } from 'preact-iso';

import { partners } from '../api/configuration.ts';
import { ResourceForm } from '../parts/form.tsx';
import { PARTNER } from '../parts/layouts.ts';
import { EnabledPill, EnabledSwitch, One, TracePill, TraceSwitch } from '../parts/one.tsx';
import { Card, Facts } from '../parts/page.tsx';
import { words as configuration } from '../texts/configuration.ts';
import { fromNow, number } from '../texts/format.ts';

/** A partner: when it was here last, its trace, its settings. */
export const PartnerPage = () => {
  const { params } = useRoute();
  const id = params['id'] ?? '';
  const { partners: words, common } = configuration.value;
  return (
    <One
      {...{ id, path: '/partners', back: words.back, resource: partners }}
      titleOf={({ partnerId, name }) => (name === null ? partnerId : `${partnerId} · ${name}`)}
      pills={({ enabled, traceUntil }) => (
        <>
          <EnabledPill isEnabled={enabled} />
          <TracePill until={traceUntil} />
        </>
      )}
      actions={({ enabled }, { ask }) => (
        <EnabledSwitch
          isEnabled={enabled}
          change={(isEnabled) => partners.change(id, { enabled: isEnabled })}
          changed={ask}
        />
      )}
    >
      {(row, { ask }) => (
        <>
          <div class="columns">
            <Card
              title={common.state}
              actions={<a href={`/transfers?peer=${encodeURIComponent(id)}`}>{common.transfers}</a>}
            >
              <Facts
                of={[
                  [words.last, row.lastConnection === null ? common.never : fromNow(row.lastConnection)],
                  [words.count, number(row.transferCount)],
                  [words.from, row.lastSeen?.remoteAddress],
                  [words.product, row.lastSeen?.product],
                ]}
              />
            </Card>
            <TraceSwitch kind="partner" id={id} until={row.traceUntil} changed={ask} />
          </div>
          <Card title={common.settings}>
            <ResourceForm
              {...{ resource: 'partner', layout: PARTNER, row, submit: common.save }}
              save={(body) => partners.change(id, body).then(ask)}
            />
          </Card>
        </>
      )}
    </One>
  );
};
