import { useLocation } from 'preact-iso';

import { files } from '../api/configuration.ts';
import { may } from '../api/session.ts';
import { Creation } from '../parts/creation.tsx';
import { FILE } from '../parts/layouts.ts';
import { Listing } from '../parts/listing.tsx';
import { EnabledPill } from '../parts/one.tsx';
import { words as configuration } from '../texts/configuration.ts';
import { texts } from '../texts/index.ts';

const PATH = '/files';
const DIRECTIONS = ['RECEIVE', 'SEND', 'BOTH'] as const;

/** All virtual files, and the form of a new one (`?new`). */
export const FilesPage = () => {
  const { query } = useLocation();
  const { files: words, common, values } = configuration.value;
  if ('new' in query && may('admin')) {
    return (
      <Creation
        {...{ path: PATH, title: words.create, back: words.back, resource: 'file', layout: FILE }}
        create={async (body) => (await files.create(body)).fileId}
      />
    );
  }
  return (
    <Listing
      {...{ path: PATH, title: texts.value.pages.files, resource: files, none: words.none, hint: words.hint }}
      idOf={({ fileId }) => fileId}
      nameOf={({ fileId }) => fileId}
      filter={{ label: words.direction, values: DIRECTIONS.map((one) => [one, values.direction[one]] as const) }}
      ways={[{ path: `${PATH}?new=1`, word: words.create }]}
      columns={[
        { title: common.name, isExtra: true, cell: ({ name }) => name },
        { title: common.state, cell: ({ enabled }) => <EnabledPill isEnabled={enabled} /> },
        { title: words.direction, cell: ({ direction }) => values.direction[direction] },
        {
          title: words.partners,
          isExtra: true,
          cell: ({ allowedPartners }) => allowedPartners?.join(', ') ?? <span class="quiet">{words.all}</span>,
        },
      ]}
    />
  );
};
