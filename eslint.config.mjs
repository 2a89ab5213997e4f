import eslint from '@eslint/js';
import prettier from 'eslint-config-prettier';
import tseslint from 'typescript-eslint';

/** The arrows of the house: what each room may not import. Apps → packages; net, storage → protocol; protocol → nothing. */
const closed = (files, patterns, message) => ({
  files,
  rules: { 'no-restricted-imports': ['error', { patterns: [{ group: patterns, message }] }] },
});

const upward = ['@pesit-node/server-app', '@pesit-node/client-app', '**/apps/**'];

const besideProtocol = [
  ...upward,
  ...['@pesit-node/net', '@pesit-node/storage', '@pesit-node/service', 'express', 'knex', 'pino'],
];

export default tseslint.config(
  {
    ignores: [
      '**/dist/**',
      'packages/console/site*/**',
      'packages/console/web/api/generated/**',
      '**/coverage/**',
      'data/**',
      'data-cluster/**',
    ],
  },
  eslint.configs.recommended,
  {
    files: ['**/*.{ts,tsx}'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/prefer-nullish-coalescing': ['error', { ignorePrimitives: { boolean: true, string: true } }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/unified-signatures': 'off',
      // `!` is forbidden: where the program knows better than the type, it says so with `as`.
      '@typescript-eslint/non-nullable-type-assertion-style': 'off',
      'no-control-regex': 'off',
      'no-console': 'error',
      eqeqeq: 'error',
    },
  },
  closed(
    ['packages/ground/src/**'],
    [...upward, '@pesit-node/*', 'express', 'knex', 'pino'],
    'ground imports Node alone (docs/architecture.md)',
  ),
  closed(
    ['packages/net/src/**', 'packages/storage/src/**'],
    besideProtocol,
    'net and storage import ground, protocol and Node alone (docs/architecture.md)',
  ),
  {
    ...closed(
      ['packages/net/src/**'],
      [...besideProtocol, 'node:net', 'node:tls'],
      'net works on the port Transport; sockets are known to what implements it (docs/architecture.md)',
    ),
    ignores: ['packages/net/src/{socket,tcp}-transport.ts', 'packages/net/src/{tls-*,proxy-accepting}.ts'],
  },
  closed(
    ['packages/service/src/**'],
    [...upward, '@pesit-node/*', '!@pesit-node/ground'],
    'service is what both apps share; it knows neither apps nor PeSIT (docs/architecture.md)',
  ),
  closed(
    ['packages/transfers/src/**'],
    [...upward, '@pesit-node/net', '@pesit-node/cluster', '@pesit-node/license', 'express', 'knex'],
    'transfers knows protocol, storage and service: no socket, no REST, no SQL (docs/architecture.md)',
  ),
  closed(
    ['packages/hooks/src/**'],
    [...upward, '@pesit-node/net', '@pesit-node/storage', '@pesit-node/cluster', '@pesit-node/license', 'express'],
    'hooks knows transfers and service, and neither apps nor sockets of PeSIT (docs/architecture.md)',
  ),
  closed(
    ['packages/cluster/src/**'],
    [...upward, '@pesit-node/net', '@pesit-node/storage', '@pesit-node/protocol', '@pesit-node/license'],
    'cluster knows service alone, and neither apps nor PeSIT (docs/architecture.md)',
  ),
  closed(
    ['packages/license/src/**'],
    [...upward, '@pesit-node/net', '@pesit-node/storage', '@pesit-node/protocol'],
    'license knows what both apps share, and neither apps nor PeSIT (docs/architecture.md)',
  ),
  closed(['apps/server/src/**'], ['@pesit-node/client-app', '**/client/src/**'], 'apps never import each other'),
  closed(['apps/client/src/**'], ['@pesit-node/server-app', '**/server/src/**'], 'apps never import each other'),
  {
    files: ['packages/protocol/src/**'],
    rules: {
      'no-restricted-imports': [
        'error',
        { patterns: [{ regex: '^(?!\\.\\.?/)', message: 'protocol imports nothing: no I/O, timer, clock or logger' }] },
      ],
      'no-restricted-globals': [
        'error',
        ...[
          'process',
          'setTimeout',
          'setInterval',
          'setImmediate',
          'queueMicrotask',
          'performance',
          'Date',
          'console',
          'fetch',
          'crypto',
        ].map((name) => ({ name, message: 'protocol is sans-I/O: bytes and `now` come in as arguments' })),
      ],
      'no-restricted-properties': [
        'error',
        {
          object: 'Math',
          property: 'random',
          message: 'protocol is deterministic: identifiers are given by the caller',
        },
      ],
    },
  },
  {
    files: ['apps/*/src/**', 'packages/*/src/**'],
    ignores: ['apps/*/src/main.ts', 'packages/cli/src/main.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        {
          object: 'process',
          property: 'env',
          message: 'src/main.ts is the only reader of the environment (design, Configuration)',
        },
        { object: 'Math', property: 'random', message: 'use node:crypto, or an argument' },
      ],
    },
  },
  {
    files: ['apps/*/src/**', 'packages/*/src/**'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: "Identifier[name='setInterval']",
          message:
            'periodic work is a task of PeriodicWork (packages/service/src/periodic), which names it, shows its failures and waits for it',
        },
        {
          // Generators and overloads cannot be arrows.
          selector: ':matches(Program, ExportNamedDeclaration) > FunctionDeclaration[generator=false]',
          message: 'a function of a file is an arrow constant (docs/architecture.md, Dialect)',
        },
      ],
    },
  },
  {
    files: ['**/test/**/*.ts', 'bench/src/**', 'torture/src/**'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      'no-console': 'off',
    },
  },
  {
    files: ['**/*.mjs'],
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        Buffer: 'readonly',
        setTimeout: 'readonly',
        clearTimeout: 'readonly',
        setInterval: 'readonly',
        clearInterval: 'readonly',
        fetch: 'readonly',
        URL: 'readonly',
        AbortSignal: 'readonly',
        performance: 'readonly',
      },
    },
  },
  prettier,
);
