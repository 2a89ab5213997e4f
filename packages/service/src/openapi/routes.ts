import { z } from 'zod';

import { notFound } from '../errors.js';
import { ANY_QUERY, endpoint } from '../http/validate.js';
import type { MountedOperation, Routes } from '../http/routes.js';
import type { ServiceInfo } from '../health/routes.js';
import { openApiDocument } from './document.js';
import type { OpenApiDocument } from './document.js';
import { DOCS_ASSETS, docsPage } from './page.js';
import type { DocsAsset } from './page.js';

const params = z.strictObject({ part: z.string() });

const titleOf = ({ name, version }: ServiceInfo): string => `${name} ${version}`;

/**
 * `/openapi.json` and `/docs`: what the app serves, made from the declarations of its routes.
 * @param mounted the routes of the app, these two not among them; asked at the first request
 */
export const documentRoutes = (routes: Routes, info: ServiceInfo, mounted: () => readonly MountedOperation[]): void => {
  let document: OpenApiDocument | undefined;
  const made = (): OpenApiDocument => (document ??= openApiDocument(info, [...mounted(), ...routes.mounted]));
  routes.resource('/openapi.json', {
    get: endpoint(
      {
        summary: 'This document',
        query: ANY_QUERY,
        answers: { 200: { contentType: 'application/json', description: 'OpenAPI 3.1.' } },
      },
      ({ res }) => res.json(made()),
    ),
  });
  routes.resource('/docs', {
    get: endpoint(
      {
        summary: 'This document as a page',
        query: ANY_QUERY,
        answers: { 200: { contentType: 'text/html', description: 'To be read, and tried.' } },
      },
      // With a slash behind it the page would look for its parts one folder too deep.
      ({ req, res }) =>
        req.path.endsWith('/') ? res.redirect(308, '../docs') : res.type('html').send(docsPage(titleOf(info))),
    ),
  });
  routes.resource('/docs/:part', {
    get: endpoint(
      {
        summary: 'A part of the page',
        params,
        query: ANY_QUERY,
        answers: {
          200: { contentType: '*/*', description: 'A script or a style sheet.' },
          404: 'The page has no such part.',
        },
      },
      async ({ params: { part }, res }) => {
        if (!Object.hasOwn(DOCS_ASSETS, part)) throw notFound('A part of the page', part, '/docs');
        const { contentType, read } = DOCS_ASSETS[part as DocsAsset];
        res.type(contentType).send(await read());
      },
    ),
  });
};
