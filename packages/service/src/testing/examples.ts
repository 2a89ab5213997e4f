/** Sends the examples of the document of an app, and everything else that may change something. */
import type { Express } from 'express';

import { operationsOfApp } from '../http/app.js';
import type { OpenApiDocument } from '../openapi/document.js';

export interface ExampleOptions {
  readonly app: Express;
  readonly document: OpenApiDocument;
  /** Sends it. @param from the address of the caller, for `X-Forwarded-For`: one of its own for each operation */
  readonly send: (call: ExampleCall) => Promise<{ readonly status: number; readonly text: string }>;
  /** Makes what the operation needs. */
  readonly prepare: (name: string) => Promise<void>;
  /** Values of the parameters of a path, by name: of things that are there. */
  readonly params: (name: string) => Readonly<Record<string, string>>;
  /** The body that is sent for an example, where one stands for what a document cannot show. Default: the example. */
  readonly body?: (name: string, example: unknown) => unknown;
  /** Operations that are answered with this documented status, because nothing is there that they could act on. */
  readonly states: Readonly<Record<string, number>>;
}

export interface ExampleCall {
  readonly name: string;
  readonly method: 'post' | 'put' | 'delete';
  readonly path: string;
  readonly body: unknown;
  readonly from: string;
}

export interface ExampleOutcome {
  readonly name: string;
  readonly from: string;
  readonly status: number;
  /** Whether the operation declares its audit entry. */
  readonly declared: boolean;
}

const asShown = (_name: string, example: unknown): unknown => example;

/**
 * Sends every operation that may change something, each with its example.
 * @returns what was sent, and the answers that were neither of success nor what `states` says
 */
export const sendExamples = async (options: ExampleOptions) => {
  const { app, document, send, prepare, params, states, body = asShown } = options;
  const outcomes: ExampleOutcome[] = [];
  const wrong: string[] = [];
  for (const { method, path, operation } of operationsOfApp(app)) {
    if (method === 'get' || operation.access === 'open') continue;
    const template = path.replace(/:(\w+)/g, '{$1}');
    const name = `${method.toUpperCase()} ${template}`;
    await prepare(name);
    const given = params(name);
    const target = template.replace(/\{(\w+)\}/g, (_, key: string) => encodeURIComponent(given[key] ?? `no-${key}`));
    const media = document.paths[template]?.[method]?.requestBody?.content['application/json'];
    const from = `192.0.2.${outcomes.length + 1}`;
    const sent = media === undefined ? undefined : body(name, media.example);
    const { status, text } = await send({ name, method, path: target, body: sent, from });
    const expected = states[name];
    if (expected === undefined ? status >= 300 : status !== expected) wrong.push(`${name}: ${status} ${text}`);
    outcomes.push({ name, from, status, declared: operation.audit !== undefined });
  }
  const unknown = Object.keys(states).filter((name) => outcomes.every((one) => one.name !== name));
  return { outcomes, wrong: [...wrong, ...unknown.map((name) => `${name}: there is no such operation`)] };
};
