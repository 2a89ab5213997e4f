import type { Routes } from '@pesit-node/service';

import { keystoreRoutes } from './keystores.js';
import type { StoreRoutesDeps } from './store-routes.js';
import { truststoreRoutes } from './truststores.js';

/** The endpoints of the stores, the same in both apps. */
export const certificateRoutes = (routes: Routes, deps: StoreRoutesDeps): void => {
  keystoreRoutes(routes, deps);
  truststoreRoutes(routes, deps);
};
