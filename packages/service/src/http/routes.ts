import { Router } from 'express';
import type { Request, RequestHandler } from 'express';
import type { z } from 'zod';

import { requireRole } from '../auth/roles.js';
import type { Role } from '../auth/roles.js';
import { ApiError } from '../errors.js';

export type Method = 'get' | 'post' | 'put' | 'delete';

/**
 * Who may call: `open` = everybody; `login` = with credentials, whatever the license says; `licensed` = with credentials,
 * while the license does not block.
 */
export type Access = 'open' | 'login' | 'licensed';

/** A body that is not JSON. */
export interface MediaAnswer {
  readonly contentType: string;
  readonly description: string;
  /** When it is server-sent events: the data of each kind, by its name. */
  readonly events?: z.ZodType;
}

/**
 * The body that comes with a status: JSON as the schema says; or, in words, what the status means: then a status of an error has the
 * house's error body, and any other has none.
 */
export type Answer = z.ZodType | MediaAnswer | string;

/** Description of one method of a path for the document of the interface; it stands beside the handler. */
export interface Operation {
  /** One line. */
  readonly summary: string;
  readonly description?: string;
  /** Default `licensed`. */
  readonly access?: Access;
  /** Least role of who may call. Default: `viewer` for GET, else `admin`. */
  readonly role?: Role;
  /** Its audit entry: kind of object, and what is done to it, in the past. Changes of the configuration have their own. */
  readonly audit?: readonly [objectType: string, action: string];
  /** Where it succeeds its audit entry is stored with what it did; `audit` is for its failures then. */
  readonly recorded?: true;
  readonly params?: z.ZodType;
  /** Default: no field at all. */
  readonly query?: z.ZodType;
  /** When given, the request must have a JSON body; otherwise, if it has one, it must be empty. */
  readonly body?: z.ZodType;
  /** The body may as well be a file (application/octet-stream): this is the query then; or a form with these fields and the part `file`. */
  readonly upload?: z.ZodType;
  /** The body may as well be a form (multipart/form-data) with these fields and the part `file`, which the handler reads. */
  readonly form?: z.ZodType;
  /** The body is of this type alone, and the handler reads it. */
  readonly media?: string;
  /** Request headers that mean something here: name → what. */
  readonly headers?: Readonly<Record<string, string>>;
  /** By status; those that follow from the parts of the request and from `access` are added (400, 401, 402, 413, 503 …). */
  readonly answers: Readonly<Record<number, Answer>>;
}

export interface Endpoint {
  readonly operation: Operation;
  readonly handle: RequestHandler;
}

/** The endpoints of one path. */
export type ResourceMethods = Readonly<Partial<Record<Method, Endpoint>>>;

/** A method of a path as it is mounted. */
export interface MountedOperation {
  readonly method: Method;
  /** As Express has it: `/api/v1/servers/:serverId`. */
  readonly path: string;
  /** The path of which this one is another name. */
  readonly aliasOf: string | undefined;
  readonly operation: Operation;
}

/** Least role of who may call. */
export const roleOf = (method: Method, { role }: Pick<Operation, 'role'>): Role =>
  role ?? (method === 'get' ? 'viewer' : 'admin');

const allowHeader = (methods: readonly string[]): string =>
  // Express answers HEAD with the handler of GET.
  methods.flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()])).join(', ');

/** An operation that has been handled. */
export interface OperationOutcome {
  readonly req: Request;
  readonly operation: Operation;
  readonly path: string;
  readonly error: unknown;
}

/** The routes of an app: what Express serves, and what the document says of it, from one declaration. */
export class Routes {
  readonly router: Router;
  readonly #mounted: MountedOperation[] = [];
  readonly #done: (outcome: OperationOutcome) => void;

  /**
   * @param done an operation that needs a login has been handled, or failed; must not throw. Default: nobody is told
   * @param router default: one of their own. Each router costs every request that passes it
   */
  constructor(done: (outcome: OperationOutcome) => void = () => undefined, router = Router()) {
    this.#done = done;
    this.router = router;
  }

  get mounted(): readonly MountedOperation[] {
    return this.#mounted;
  }

  /**
   * Mounts every method of a path at once, so that any other method is answered 405 with `Allow`.
   * Mount fixed paths (`/transfers/history`) before those with a parameter in the same place (`/transfers/:id`).
   * @param path one path, or all the paths that mean the same (`/api/v1/servers` and `/api/servers`), the proper one first.
   */
  resource(path: string | readonly string[], methods: ResourceMethods): void {
    const paths = typeof path === 'string' ? [path] : path;
    const allow = allowHeader(Object.keys(methods));
    for (const one of paths) {
      const route = this.router.route(one);
      for (const [method, { operation, handle }] of Object.entries(methods) as [Method, Endpoint][]) {
        route[method](operation.access === 'open' ? handle : this.#guarded(method, one, { operation, handle }));
        this.#mounted.push({ method, path: one, aliasOf: one === paths[0] ? undefined : paths[0], operation });
      }
      route.all((req) => {
        throw new ApiError('METHOD_NOT_ALLOWED', `${req.method} is not possible here: expected ${allow}`, {
          headers: { Allow: allow },
        });
      });
    }
  }

  /** Behind the role that it declares. */
  #guarded(method: Method, path: string, { operation, handle }: Endpoint): RequestHandler {
    const least = roleOf(method, operation);
    return async (req, res, next) => {
      let error: unknown;
      try {
        requireRole(req, least);
        await handle(req, res, next);
      } catch (thrown) {
        error = thrown;
        throw thrown;
      } finally {
        this.#done({ req, operation, path, error });
      }
    };
  }
}
