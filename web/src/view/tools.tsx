import { useEffect } from "preact/hooks";
import { useBegan, useFocus } from "./focus";

/** What applies to all charts: which time they name, and how to get back from a zoom. */
export function Tools() {
  const focus = useFocus("view");
  const began = useBegan();
  const { isZoomed, isClock } = focus;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => event.key === "Escape" && focus.isZoomed && focus.reset();
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [focus]);
  return (
    <div class="tools" id="tools">
      {began !== null && (
        <div class="choice" role="group" aria-label="Time of the charts">
          <button type="button" aria-pressed={!isClock} onClick={() => focus.showClock(false)}>since the start</button>
          <button type="button" aria-pressed={isClock} onClick={() => focus.showClock(true)}>clock (UTC)</button>
        </div>
      )}
      {isZoomed ? <button type="button" class="reset" onClick={() => focus.reset()}>Reset zoom <kbd>Esc</kbd></button> : <span class="hint">drag over a chart to zoom; click a name to hide its line</span>}
    </div>
  );
}
