import type { FunctionComponent } from 'preact';
import { ErrorBoundary, LocationProvider, Route, Router } from 'preact-iso';
import { useEffect } from 'preact/hooks';

import { app, isBlocked, login } from './api/session.ts';
import { LoginPage } from './pages/login.tsx';
import { laterPage } from './parts/later-page.tsx';
import { Page } from './parts/page.tsx';
import { Shell } from './parts/shell.tsx';
import { texts } from './texts/index.ts';

/** Fetched as soon as there is a login to fill in: it is the first behind it. */
const fetchNow = () => import('./pages/now.tsx');

const NowPage = laterPage(async () => (await fetchNow()).NowPage);
const LicensePage = laterPage(async () => (await import('./pages/license.tsx')).LicensePage);
const TransfersPage = laterPage(async () => (await import('./pages/transfers.tsx')).TransfersPage);
const AuditPage = laterPage(async () => (await import('./pages/audit.tsx')).AuditPage);
const CertificatesPage = laterPage(async () => (await import('./pages/certificates.tsx')).CertificatesPage);
const ClusterPage = laterPage(async () => (await import('./pages/cluster.tsx')).ClusterPage);
const FiguresPage = laterPage(async () => (await import('./pages/figures.tsx')).FiguresPage);
const SendPage = laterPage(async () => (await import('./pages/send.tsx')).SendPage);
const RecordPage = laterPage(async () => (await import('./pages/record.tsx')).RecordPage);
const PartnersPage = laterPage(async () => (await import('./pages/partners.tsx')).PartnersPage);
const PartnerPage = laterPage(async () => (await import('./pages/partner.tsx')).PartnerPage);
const FilesPage = laterPage(async () => (await import('./pages/files.tsx')).FilesPage);
const FilePage = laterPage(async () => (await import('./pages/file.tsx')).FilePage);
const ListenersPage = laterPage(async () => (await import('./pages/listeners.tsx')).ListenersPage);
const ListenerPage = laterPage(async () => (await import('./pages/listener.tsx')).ListenerPage);
const ServersPage = laterPage(async () => (await import('./pages/servers.tsx')).ServersPage);
const ServerPage = laterPage(async () => (await import('./pages/server.tsx')).ServerPage);

/** What is configured in each app. */
const CONFIGURED: Readonly<Record<'server' | 'client', readonly (readonly [path: string, page: FunctionComponent])[]>> =
  {
    server: [
      ['/partners', PartnersPage],
      ['/partners/:id', PartnerPage],
      ['/files', FilesPage],
      ['/files/:id', FilePage],
      ['/listeners', ListenersPage],
      ['/listeners/:id', ListenerPage],
    ],
    client: [
      ['/servers', ServersPage],
      ['/servers/:id', ServerPage],
    ],
  };

const Nowhere = () => {
  const { nowhere } = texts.value;
  return (
    <Page title={nowhere.title}>
      <p>
        <a href="/">{nowhere.home}</a>
      </p>
    </Page>
  );
};

/** The login, and behind it the pages; the address stays, so that a login leads to the page that was asked for. */
export const App = () => {
  useEffect(() => void fetchNow().catch(() => undefined), []);
  return login.value === undefined ? (
    <LoginPage />
  ) : (
    <LocationProvider>
      <ErrorBoundary>
        <Shell>
          {isBlocked.value ? (
            <LicensePage />
          ) : (
            <Router>
              <Route path="/" component={NowPage} />
              <Route path="/transfers" component={TransfersPage} />
              <Route path="/transfers/:id" component={RecordPage} />
              <Route path="/send" component={SendPage} />
              <Route path="/audit" component={AuditPage} />
              <Route path="/cluster" component={ClusterPage} />
              <Route path="/certificates" component={CertificatesPage} />
              <Route path="/figures" component={FiguresPage} />
              {CONFIGURED[app.value].map(([path, component]) => (
                <Route key={path} path={path} component={component} />
              ))}
              <Route path="/license" component={LicensePage} />
              <Route default component={Nowhere} />
            </Router>
          )}
        </Shell>
      </ErrorBoundary>
    </LocationProvider>
  );
};
