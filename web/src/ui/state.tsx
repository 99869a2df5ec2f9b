import type { Fetched } from "./api";

/** What is not there yet, or why it is not, or not as it is now. */
export function State({ fetched }: { fetched: Fetched<unknown> }) {
  if (fetched.is === "coming") return <p class="link" id="state" role="status">reading the store …</p>;
  if (fetched.is === "there" && fetched.trouble) return <p class="link lost" id="state" role="alert">{fetched.trouble}; trying again …</p>;
  if (fetched.is === "refused") return <p class="link lost" id="state" role="alert">{fetched.why}</p>;
  return null;
}

/** The way back. */
export const Back = () => <nav class="back"><a href="/">All runs</a></nav>;
