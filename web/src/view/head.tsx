import type { ComponentChildren } from "preact";

/** The top of a page. */
export function Head({ what, about, children }: { what: string; about: string; children?: ComponentChildren }) {
  return (
    <header class="head">
      <p class="brand">throng <span>{what}</span></p>
      <h1>{about}</h1>
      {children}
    </header>
  );
}
