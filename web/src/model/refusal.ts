/** What a refusal says: the runs API responds with `{"errors": […]}`, a dashboard with a line of text. */
export function refusal(body: string, status: number): string {
  const text = body.trim();
  const errors = errorsOf(text);
  if (errors.length > 0) return errors.map((error, nth) => (nth === 0 ? error : error.charAt(0).toUpperCase() + error.slice(1))).join(". ");
  // A page of a proxy in between is for people to look at, not to read in a line; so is JSON.
  return text === "" || /^[<{[]/.test(text) ? `refused with status ${status}` : text;
}

function errorsOf(text: string): string[] {
  try {
    const { errors, error } = (JSON.parse(text) ?? {}) as { errors?: unknown; error?: unknown };
    return (Array.isArray(errors) ? errors : [error]).filter((one): one is string => typeof one === "string" && one !== "");
  } catch {
    return [];
  }
}
