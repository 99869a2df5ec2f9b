package throng.play

import scala.concurrent.{Future, Promise}
import scala.concurrent.duration.{Duration, FiniteDuration}
import scala.util.{Success, Try}

import play.api.{Application, ApplicationLoader, BuiltInComponentsFromContext}
import play.api.mvc.{EssentialFilter, Result, WebSocket}
import play.api.mvc.Results.{BadRequest, Ok}
import play.api.routing.Router
import play.api.routing.sird._

/** The routes of the text's server and nothing else: no filters, no injection. Play's own main class loads it. */
class Echo extends ApplicationLoader {
  def load(context: ApplicationLoader.Context): Application = new Routes(context).application
}

private class Routes(context: ApplicationLoader.Context) extends BuiltInComponentsFromContext(context) with Own {
  override lazy val httpFilters: Seq[EssentialFilter] = Nil

  lazy val router: Router = Router.from {
    case GET(p"/") => defaultActionBuilder(Ok("Hello World!"))
    case GET(p"/longpoll" ? q_o"for=$time") =>
      Try(Duration(time.getOrElse("5s"))) match {
        case Success(delay: FiniteDuration) => defaultActionBuilder.async(after(delay))
        case _ => defaultActionBuilder(BadRequest("not a time, write for=5s"))
      }
    case GET(p"/ws/echo") => WebSocket.accept[String, String](_ => echo)
  }

  /** An answer that comes after `delay`, with no thread waiting for it. */
  private def after(delay: FiniteDuration): Future[Result] = {
    val answer = Promise[Result]()
    actorSystem.scheduler.scheduleOnce(delay)(answer.success(Ok("polled")))(actorSystem.dispatcher)
    answer.future
  }
}
