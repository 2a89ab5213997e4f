import { useLocation } from 'preact-iso';

import { partners } from '../api/configuration.ts';
import { may } from '../api/session.ts';
import { Creation } from '../parts/creation.tsx';
import { PARTNER } from '../parts/layouts.ts';
import { Listing } from '../parts/listing.tsx';
import { EnabledPill, TracePill } from '../parts/one.tsx';
import { words as configuration } from '../texts/configuration.ts';
import { fromNow, number } from '../texts/format.ts';
import { texts } from '../texts/index.ts';
import { SetUpPartner } from './set-up-partner.tsx';

const PATH = '/partners';

/** All partners, and the form of a new one (`?new`). */
export const PartnersPage = () => {
  const { query } = useLocation();
  const { partners: words, setUp, common, list, values } = configuration.value;
  const { pages } = texts.value;
  if ('setup' in query && may('admin')) return <SetUpPartner />;
  if ('new' in query && may('admin')) {
    return (
      <Creation
        {...{ path: PATH, title: words.create, back: words.back, resource: 'partner', layout: PARTNER }}
        preset={{ allowedOperations: 'READ\nWRITE' }}
        create={async (body) => (await partners.create(body)).partnerId}
      />
    );
  }
  return (
    <Listing
      {...{ path: PATH, title: pages.partners, resource: partners, none: words.none, hint: words.hint }}
      idOf={({ partnerId }) => partnerId}
      nameOf={({ partnerId }) => partnerId}
      filter={{
        label: common.state,
        values: [
          ['true', list.enabled],
          ['false', list.disabled],
        ],
      }}
      ways={[
        { path: `${PATH}?setup=1`, word: setUp.title },
        { path: `${PATH}?new=1`, word: words.create },
      ]}
      columns={[
        { title: common.name, cell: ({ name }) => name },
        {
          title: common.state,
          cell: ({ enabled, traceUntil }) => (
            <span class="row">
              <EnabledPill isEnabled={enabled} />
              <TracePill until={traceUntil} />
            </span>
          ),
        },
        {
          title: words.may,
          isExtra: true,
          cell: ({ allowedOperations }) => allowedOperations.map((one) => values.allowedOperations[one]).join(', '),
        },
        {
          title: words.files,
          isExtra: true,
          cell: ({ allowedFiles }) => allowedFiles?.join(', ') ?? <span class="quiet">{words.all}</span>,
        },
        {
          title: words.last,
          isExtra: true,
          cell: ({ lastConnection }) =>
            lastConnection === null ? <span class="quiet">{common.never}</span> : fromNow(lastConnection),
        },
        { title: words.count, isExtra: true, cell: ({ transferCount }) => number(transferCount) },
      ]}
    />
  );
};
