import { ANY_QUERY, endpoint } from '../http/validate.js';
import { Routes } from '../http/routes.js';
import type { MountedOperation } from '../http/routes.js';
import type { ServiceInfo } from '../health/routes.js';
import { openApiDocument } from './document.js';
import type { OpenApiDocument } from './document.js';
import { docsPage } from './page.js';

/**
 * `/openapi.json` and `/docs`: what the app serves, made from the declarations of its routes.
 * @param mounted the routes of the app, these two not among them; asked at the first request
 */
export const documentRoutes = (info: ServiceInfo, mounted: () => readonly MountedOperation[]): Routes => {
  const routes = new Routes();
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
        answers: { 200: { contentType: 'text/html', description: 'To be read.' } },
      },
      ({ res }) => res.type('html').send(docsPage(made())),
    ),
  });
  return routes;
};
