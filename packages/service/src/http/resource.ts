import type { IRouter, RequestHandler } from 'express';

import { ApiError } from '../errors.js';

export type Method = 'get' | 'post' | 'put' | 'delete';

/** The handlers of one path. */
export type ResourceMethods = Readonly<Partial<Record<Method, RequestHandler | readonly RequestHandler[]>>>;

const allowHeader = (methods: readonly string[]): string =>
  // Express answers HEAD with the handler of GET.
  methods.flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()])).join(', ');

/**
 * Mounts every method of a path at once, so that any other method is answered 405 with `Allow`.
 * Mount fixed paths (`/transfers/history`) before those with a parameter in the same place (`/transfers/:id`).
 * @param path one path, or all the paths that mean the same (`/api/v1/servers` and `/api/servers`).
 */
export const resource = (router: IRouter, path: string | readonly string[], methods: ResourceMethods): void => {
  const allow = allowHeader(Object.keys(methods));
  for (const one of typeof path === 'string' ? [path] : path) {
    const route = router.route(one);
    for (const [method, handlers] of Object.entries(methods) as [
      Method,
      RequestHandler | readonly RequestHandler[],
    ][]) {
      route[method](...(Array.isArray(handlers) ? (handlers as RequestHandler[]) : [handlers as RequestHandler]));
    }
    route.all((req) => {
      throw new ApiError('METHOD_NOT_ALLOWED', `${req.method} is not possible here: expected ${allow}`, {
        headers: { Allow: allow },
      });
    });
  }
};
