(ns main
  "The text's server: a body of `length` characters, held within 1 to 10,240, 1,024 of them where none is asked for.
  HOST, PORT and THREADS (http-kit's own 4) from the environment."
  (:require [ring.middleware.keyword-params :refer [wrap-keyword-params]]
            [ring.middleware.params :refer [wrap-params]]))

(def run-server
  "2.0-rc1 has it under another name."
  (try
    (requiring-resolve 'org.httpkit.server/run-server)
    (catch java.io.FileNotFoundException _
      (requiring-resolve 'me.shenfeng.http.server/run-server))))

(def const-str
  "More than the 10,240 that are ever wanted, as in the text."
  (apply str (repeat 200 "http-kit is a http server & client
   written from scrach for high performance clojure web applications,
   support async and websocket")))

(defn handler [request]
  ;; A length that is no number is an error of the server, 500: so it is in the text's.
  (let [length (Integer/parseInt (get-in request [:params :length] "1024"))]
    {:status 200
     :headers {"Content-Type" "text/plain"}
     :body (subs const-str 0 (max 1 (min 10240 length)))}))

(defn from-environment [variable default]
  (or (not-empty (System/getenv variable)) default))

(defn -main [& _]
  (let [host (from-environment "HOST" "0.0.0.0")
        port (from-environment "PORT" "8000")
        threads (from-environment "THREADS" "4")]
    (run-server (-> handler wrap-keyword-params wrap-params)
                {:ip host :port (Integer/parseInt port) :thread (Integer/parseInt threads)})
    (println (str "Server started. listen at " host "@" port))))
